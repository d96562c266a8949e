--[[ acknowledge: MySQL has a day of a user; take it out of the outbox, and forget what didn't know of it.

  KEYS[1]  {<shard>}:user:<id>:checkins          hash: last, streak
  KEYS[2]  {<shard>}:user:<id>:checkins:<month>  bitmap: 32 bits, one for each day; the first: it is whole
  KEYS[3]  {<shard>}:user:<id>:checkins:outbox   hash: day -> when it was accepted
  KEYS[4]  {<shard>}:user:<id>:checkins:lease    string: there as long as nothing was acknowledged since MySQL was asked
  KEYS[5]  {<shard>}:checkins:outboxes           zset: user -> oldest in their outbox
  ARGV[1]  day, as a number
  ARGV[2]  which of its month
  ARGV[3]  user

  Returns 1 when Redis didn't know of the day, 0 otherwise

  Safe to repeat: what has been acknowledged stays so; what was invalidated is read from MySQL again. ]]
--!include outbox
local head, month, outbox = KEYS[1], KEYS[2], KEYS[3]
local day, invalidated = tonumber(ARGV[1]), 0
redis.call('UNLINK', KEYS[4])
redis.call('HDEL', outbox, day)
if redis.call('EXISTS', outbox) == 0 then unindex_outbox(KEYS[5], ARGV[3]) end

-- Newer than the streak, or right before it: it would be longer.
local fields = redis.call('HMGET', head, 'last', 'streak')
if fields[1] and (day > tonumber(fields[1]) or day == fields[1] - fields[2]) then
  redis.call('UNLINK', head)
  invalidated = 1
end
if redis.call('GETBIT', month, 0) == 1 and redis.call('GETBIT', month, ARGV[2]) == 0 then
  redis.call('UNLINK', month)
  invalidated = 1
end
return invalidated

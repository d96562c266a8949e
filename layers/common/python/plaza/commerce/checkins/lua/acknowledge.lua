--[[ acknowledge: remove a stored day from a user's outbox, and drop keys that lack it.

  KEYS[1]  {<shard>}:user:<id>:checkins          hash: last, streak
  KEYS[2]  {<shard>}:user:<id>:checkins:<month>  bitmap: bit d is day d; bit 0 marks a complete month
  KEYS[3]  {<shard>}:user:<id>:checkins:outbox   hash: day -> when it was accepted
  KEYS[4]  {<shard>}:user:<id>:checkins:lease    string: exists while nothing was acknowledged since it was acquired
  KEYS[5]  {<shard>}:checkins:outboxes           zset: user -> when the oldest entry was accepted
  ARGV[1]  day (date.toordinal)
  ARGV[2]  day of the month
  ARGV[3]  user

  Returns 1 if a key lacked the day and was dropped, 0 otherwise

  Safe to repeat: the entry stays deleted, and dropped keys are hydrated from MySQL. ]]
--!include outbox
local head, month, outbox = KEYS[1], KEYS[2], KEYS[3]
local day, invalidated = tonumber(ARGV[1]), 0
redis.call('UNLINK', KEYS[4])
redis.call('HDEL', outbox, day)
if redis.call('EXISTS', outbox) == 0 then unindex_outbox(KEYS[5], ARGV[3]) end

-- A day after the streak or right before it changes the streak.
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

--[[ add_to_outbox: put a day that MySQL could not take into the outbox of its user, and forget what lacks it.

  KEYS[1]  {<shard>}:user:<id>:checkins          hash: last, streak
  KEYS[2]  {<shard>}:user:<id>:checkins:<month>  bitmap: 32 bits, one for each day; the first: it is whole
  KEYS[3]  {<shard>}:user:<id>:checkins:outbox   hash: day -> when it was accepted, microseconds since 1970; the outbox
  KEYS[4]  {<shard>}:checkins:outboxes           zset: user -> oldest in their outbox, or when it may be swept again
  ARGV[1]  day, as a number
  ARGV[2]  which of its month
  ARGV[3]  user
  ARGV[4]  when it was accepted, microseconds since 1970

  Returns 1 when Redis did not have the day, 0 otherwise

  Safe to repeat: a day that is in the outbox stays as it is, and one that MySQL has is saved once more. ]]
--!include outbox
local head, month, outbox = KEYS[1], KEYS[2], KEYS[3]
local day = tonumber(ARGV[1])
local added = redis.call('HSETNX', outbox, day, ARGV[4])
if added == 1 then index_outbox(KEYS[4], ARGV[3], ARGV[4]) end

-- Newer than the streak, or right before it: it would be longer.
local fields = redis.call('HMGET', head, 'last', 'streak')
if fields[1] and (day > tonumber(fields[1]) or day == fields[1] - fields[2]) then redis.call('UNLINK', head) end
if redis.call('GETBIT', month, 0) == 1 then redis.call('SETBIT', month, ARGV[2], 1) end
return added

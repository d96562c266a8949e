--[[ add_to_outbox: add a day that MySQL could not store to its user's outbox, and correct the other keys.

  KEYS[1]  {<shard>}:user:<id>:checkins          hash: last, streak
  KEYS[2]  {<shard>}:user:<id>:checkins:<month>  bitmap: bit d is day d; bit 0 marks a complete month
  KEYS[3]  {<shard>}:user:<id>:checkins:outbox   hash: day -> when it was accepted, microseconds since 1970
  KEYS[4]  {<shard>}:checkins:outboxes           zset: user -> when the oldest entry was accepted
  ARGV[1]  day (date.toordinal)
  ARGV[2]  day of the month
  ARGV[3]  user
  ARGV[4]  when it was accepted, microseconds since 1970

  Returns 1 if the day was not in the outbox, 0 otherwise

  Safe to repeat: an entry of the outbox is not changed, and MySQL stores a day once. ]]
--!include outbox
local head, month, outbox = KEYS[1], KEYS[2], KEYS[3]
local day = tonumber(ARGV[1])
local added = redis.call('HSETNX', outbox, day, ARGV[4])
if added == 1 then index_outbox(KEYS[4], ARGV[3], ARGV[4]) end

-- A day after the streak or right before it changes the streak.
local fields = redis.call('HMGET', head, 'last', 'streak')
if fields[1] and (day > tonumber(fields[1]) or day == fields[1] - fields[2]) then redis.call('UNLINK', head) end
if redis.call('GETBIT', month, 0) == 1 then redis.call('SETBIT', month, ARGV[2], 1) end
return added

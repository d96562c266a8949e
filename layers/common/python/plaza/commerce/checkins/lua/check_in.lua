--[[ check_in: set a day of a user, extend or begin the streak, and add the day to the outbox.

  KEYS[1]  {<shard>}:user:<id>:checkins          hash: last, 0 for none; streak, consecutive days up to last; term, <month> -> 1
  KEYS[2]  {<shard>}:user:<id>:checkins:<month>  bitmap: bit d is day d; bit 0 marks a complete month
  KEYS[3]  {<shard>}:user:<id>:checkins:outbox   hash: day -> when it was accepted, microseconds since 1970
  KEYS[4]  {<shard>}:checkins:outboxes           zset: user -> when the oldest entry was accepted
  ARGV[1]  day (date.toordinal)
  ARGV[2]  day of the month
  ARGV[3]  user
  ARGV[4]  now, microseconds since 1970
  ARGV[5]  ttl, seconds
  ARGV[6]  term of this node

  Returns {code, last, streak, bits, accepted}
    code      CHANGED; UNCHANGED; DAY_PASSED, last is later than the day; COLD, without other
              values: hydrate under this term and try again
    bits      of the month, bit 0 the highest
    accepted  when the day was accepted, as text; '0' if MySQL has it or code is DAY_PASSED

  Safe to repeat: a repeat returns UNCHANGED with the same accepted. ]]
--!include outbox
local head, month, outbox = KEYS[1], KEYS[2], KEYS[3]
local fields = redis.call('HMGET', head, 'last', 'streak', 'term', string.sub(month, -7))
if not fields[1] or fields[3] ~= ARGV[6] or not fields[4] or redis.call('GETBIT', month, 0) == 0 then
  return {'COLD'}
end
local day, last, streak = tonumber(ARGV[1]), tonumber(fields[1]), tonumber(fields[2])
local bits = redis.call('BITFIELD', month, 'GET', 'u32', 0)[1]
if last > day then return {'DAY_PASSED', last, streak, bits, '0'} end
if last == day then return {'UNCHANGED', last, streak, bits, redis.call('HGET', outbox, day) or '0'} end

streak = last == day - 1 and streak + 1 or 1
redis.call('HSET', head, 'last', day, 'streak', streak)
redis.call('EXPIRE', head, ARGV[5])
redis.call('SETBIT', month, ARGV[2], 1)
redis.call('EXPIRE', month, ARGV[5])
redis.call('HSET', outbox, day, ARGV[4])
index_outbox(KEYS[4], ARGV[3], ARGV[4])
return {'CHANGED', day, streak, redis.call('BITFIELD', month, 'GET', 'u32', 0)[1], ARGV[4]}

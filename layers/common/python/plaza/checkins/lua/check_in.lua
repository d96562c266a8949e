--[[ check_in: set a day of a user, continue or begin their streak, and write it to the outbox.

  KEYS[1]  {<shard>}:user:<id>:checkins          hash: last, the newest day, 0 for none; streak, how many in a row end there
  KEYS[2]  {<shard>}:user:<id>:checkins:<month>  bitmap: 32 bits, one for each day; the first: it is whole
  KEYS[3]  {<shard>}:user:<id>:checkins:outbox   hash: day -> when it was accepted, microseconds since 1970; the outbox
  KEYS[4]  {<shard>}:checkins:outboxes           zset: user -> oldest in their outbox, or when it may be swept again
  ARGV[1]  day, as a number
  ARGV[2]  which of its month
  ARGV[3]  user
  ARGV[4]  now, microseconds since 1970
  ARGV[5]  ttl, seconds

  Returns {code, last, streak, bits, accepted}
    code  CHANGED, UNCHANGED; DAY_PASSED: last is after that day, which is over for them;
          COLD, with nothing behind it: not all is in Redis, hydrate and try again
    bits  those of the month, the first is the highest
    accepted  when the day was accepted, as text; '0': MySQL has it, or code is DAY_PASSED

  Safe to repeat: the day is set then, and the answer is UNCHANGED with the same accepted. ]]
--!include outbox
local head, month, outbox = KEYS[1], KEYS[2], KEYS[3]
local fields = redis.call('HMGET', head, 'last', 'streak')
if not fields[1] or redis.call('GETBIT', month, 0) == 0 then return {'COLD'} end
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

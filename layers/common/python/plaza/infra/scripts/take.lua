--[[ take: one token out of a bucket, if there is one.

  KEYS[1]  {<shard>}:bucket:<group>:<who>  string: when it will be full again, microseconds since 1970; none: it is
  ARGV[1]  rate: how many tokens come in a second
  ARGV[2]  burst: how many the bucket holds

  Returns 0 when there was one, it is gone then; else in how many milliseconds there will be one

  Safe to repeat: it takes one more, so that nobody ever gets more than they may. ]]
--!include bucket
local now = redis.call('TIME')
local now_us = now[1] * 1000000 + now[2]
local full_us, early_us = take_one(redis.call('GET', KEYS[1]), now_us, tonumber(ARGV[1]), tonumber(ARGV[2]))
-- A microsecond is nothing, and the quotient need not be exact.
if early_us > 1 then return math.ceil(early_us / 1000) end
redis.call('SET', KEYS[1], string.format('%.0f', full_us), 'PX', math.ceil((full_us - now_us) / 1000))
return 0

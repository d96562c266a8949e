--[[ acquire_token: one token out of a bucket, if there is one.

  KEYS[1]  {<shard>}:bucket:<group>:<subject>  string: when the bucket is full again, microseconds since 1970
  ARGV[1]  rate: how many tokens come in a second
  ARGV[2]  burst: how many the bucket holds

  Returns 0 when there was one, it is gone then; else in how many milliseconds there will be one

  Safe to repeat: it takes one more, so that nobody ever gets more than they may. ]]
--!include bucket
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local full_us, early_us = take_token(tonumber(redis.call('GET', KEYS[1]) or 0), now_us, ARGV[1], ARGV[2])
if early_us > 0 then return math.ceil(early_us / 1000) end
-- Where no key is, the bucket is full.
redis.call('SET', KEYS[1], full_us, 'PX', math.ceil((full_us - now_us) / 1000))
return 0

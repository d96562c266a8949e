--[[ acquire_token: take one token from a bucket, if there is one.

  KEYS[1]  {<shard>}:bucket:<group>:<subject>  string: when the bucket is full again, microseconds since 1970
  ARGV[1]  rate: tokens per second
  ARGV[2]  burst: tokens of a full bucket

  Returns the microseconds until there is a token; if one was taken, those until the bucket is full again, below 0

  Safe to repeat: a repeat takes another token, so no caller exceeds its rate. ]]
--!include bucket
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local full_us, early_us = take_token(tonumber(redis.call('GET', KEYS[1]) or 0), now_us, ARGV[1], ARGV[2])
if early_us > 0 then return early_us end
-- The key expires when the bucket is full.
redis.call('SET', KEYS[1], full_us, 'PX', math.ceil((full_us - now_us) / 1000))
return now_us - full_us

--[[ acquire_token: take tokens from a bucket, if it has as many.

  KEYS[1]  {<shard>}:bucket:<group>:<subject>  string: when the bucket is full again, microseconds since 1970
  ARGV[1]  rate: tokens per second
  ARGV[2]  burst: tokens of a full bucket
  ARGV[3]  tokens: how many to take, at most burst; absent: 1
  ARGV[4]  largest burst of all callers of the bucket; absent: ARGV[2]

  Returns the microseconds until there are as many; if they were taken, those until the bucket is full again, below 0

  Safe to repeat: a repeat takes as many again, so no caller exceeds its rate. ]]
--!include bucket
local MAX_STEP_US = 120000000 -- a clock that goes back by less is waited for
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local limit_us = limit_bucket(now_us, ARGV[1], ARGV[4] or ARGV[2])
local before_us = tonumber(redis.call('GET', KEYS[1]) or 0)
local is_of_later_clock = before_us > limit_us + MAX_STEP_US
local full_us, early_us = take_token(is_of_later_clock and limit_us or before_us, now_us, ARGV[1], ARGV[2])
local others_us = math.ceil(1000000 / ARGV[1]) * (tonumber(ARGV[3] or 1) - 1)
full_us, early_us = full_us + others_us, early_us + others_us
if early_us > 0 then
  if not is_of_later_clock then return early_us end
  full_us = limit_us
end
-- The key expires when the bucket is full.
redis.call('SET', KEYS[1], full_us, 'PX', math.ceil((full_us - now_us) / 1000))
if early_us > 0 then return early_us end
return now_us - full_us

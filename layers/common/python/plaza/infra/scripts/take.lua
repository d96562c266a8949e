--[[ take: one token out of a bucket, if there is one.

  KEYS[1]  {<shard>}:bucket:<group>:<who>  hash: tokens, and tokens_us, when there were so many, microseconds since 1970
  ARGV[1]  rate: how many tokens come in a second
  ARGV[2]  burst: how many the bucket holds

  Returns 0 when there was one, it is gone then; else in how many milliseconds there will be one

  Safe to repeat: it takes one more, so that nobody ever gets more than they may. ]]
--!include bucket
local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local held = redis.call('HMGET', KEYS[1], 'tokens', 'tokens_us')
local now = redis.call('TIME')
-- A clock that went back brings no token twice.
local now_us = math.max(now[1] * 1000000 + now[2], tonumber(held[2] or 0))
local tokens = refill(held[1], held[2], now_us, rate, burst)
if tokens < 1 then return math.ceil(until_next_us(tokens, rate) / 1000) end
redis.call('HSET', KEYS[1], 'tokens', tokens - 1, 'tokens_us', string.format('%.0f', now_us))
-- Where no key is, the bucket is full: so it may go when it would be.
redis.call('PEXPIRE', KEYS[1], math.ceil((burst - tokens + 1) / rate * 1000))
return 0

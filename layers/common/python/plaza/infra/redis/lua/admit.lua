--[[ admit: count an attempt if all sliding windows admit it. A refused attempt does not count.

  KEYS[1]  {<shard>}:limit:<action>:<subject>  zset: attempt -> when it was admitted, milliseconds since 1970
  ARGV[1]  attempt: a unique name
  ARGV[2...]  pairs: the length of a window in milliseconds, the maximum of attempts in it

  Bounded by: the attempts that one window admits, at most 60.

  Returns 0 if it is admitted, else the milliseconds until it may be

  Safe to repeat: an admitted attempt is admitted again and counts once. ]]
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
-- Attempts later than now are of a clock that went back.
for _, attempt in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], now_ms + 1000, '+inf')) do
  redis.call('ZADD', KEYS[1], now_ms, attempt)
end
local longest_ms, wait_ms = 0, 0
for i = 2, #ARGV, 2 do
  local window_ms, max_attempts = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  longest_ms = math.max(longest_ms, window_ms)
  -- The window is full while the attempt at rank max_attempts, counted from the newest, is inside of it.
  local oldest = redis.call('ZRANGE', KEYS[1], -max_attempts, -max_attempts, 'WITHSCORES')
  if oldest[2] then wait_ms = math.max(wait_ms, oldest[2] + window_ms - now_ms) end
end
if wait_ms > 0 then return wait_ms end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now_ms - longest_ms)
redis.call('ZADD', KEYS[1], now_ms, ARGV[1])
redis.call('PEXPIRE', KEYS[1], longest_ms)
return 0

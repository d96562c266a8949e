--[[ admit: may this happen now? Sliding windows over what happened; what is refused doesn't count.

  KEYS[1]  {<shard>}:limit:<action>:<subject>  zset: attempt -> when it was admitted, milliseconds since 1970
  ARGV[1]  attempt: a name that no other has
  ARGV[2...]  pairs: a window in milliseconds, the most within it

  Bounded by: what one window admits, 60 attempts at most.

  Returns 0 when it may; else in how many milliseconds it might

  Safe to repeat: an attempt that was admitted is admitted again, and counts once. ]]
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local longest_ms, wait_ms = 0, 0
for i = 2, #ARGV, 2 do
  local window_ms, most = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  longest_ms = math.max(longest_ms, window_ms)
  -- Full as long as the one that is `most` places from the newest is within the window.
  local oldest = redis.call('ZRANGE', KEYS[1], -most, -most, 'WITHSCORES')
  if oldest[2] then wait_ms = math.max(wait_ms, oldest[2] + window_ms - now_ms) end
end
if wait_ms > 0 then return wait_ms end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now_ms - longest_ms)
redis.call('ZADD', KEYS[1], now_ms, ARGV[1])
redis.call('PEXPIRE', KEYS[1], longest_ms)
return 0

--[[ sweep: what of a target has waited too long in the outbox, and when to look again.

  KEYS[1]  {<shard>}:<kind>:<target>:meta     hash: sweeps, sweep_cursor, ...
  KEYS[2]  {<shard>}:<kind>:<target>:pending  hash: actor -> state:ver:total
  KEYS[3]  {<shard>}:dirty                    zset: member -> oldest pending ver, or when it may be swept again
  ARGV[1]  member: the target's name in dirty
  ARGV[2]  grace: how long an entry may wait for its consumer, microseconds
  ARGV[3]  count: about how many entries to look at
  ARGV[4]  longest wait between two sweeps of a target, microseconds

  Returns {actor, state:ver:total, actor, state:ver:total, ...}: what to publish again

  Safe to repeat: a fact that is published twice is saved once. ]]
local LEAST_WAIT_US = 1000000
local meta_key, pending, dirty, member = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local now = redis.call('TIME')
local now_us, grace_us = now[1] * 1000000 + now[2], tonumber(ARGV[2])

if redis.call('EXISTS', pending) == 0 then
  redis.call('ZREM', dirty, member)
  return {}
end

local seen = redis.call('HMGET', meta_key, 'sweeps', 'sweep_cursor')
local sweeps, cursor = tonumber(seen[1] or 0), seen[2] or '0'
local page = redis.call('HSCAN', pending, cursor, 'COUNT', ARGV[3])
local old = {}
for i = 1, #page[2], 2 do
  local ver = tonumber(string.match(page[2][i + 1], ':(%d+):'))
  if ver <= now_us - grace_us then
    old[#old + 1], old[#old + 2] = page[2][i], page[2][i + 1]
  end
end

-- Not through yet: the rest of it is due at once. Else wait, longer after each time that found something.
local wait_us = 0
if page[1] == '0' then
  wait_us = math.max(grace_us, LEAST_WAIT_US)
  if #old > 0 then
    wait_us = math.min(wait_us * 2 ^ math.min(sweeps + 1, 20), tonumber(ARGV[4]))
    sweeps = sweeps + 1
  end
end
redis.call('HSET', meta_key, 'sweeps', sweeps, 'sweep_cursor', page[1])
redis.call('ZADD', dirty, 'XX', string.format('%.0f', now_us + wait_us - grace_us), member)
return old

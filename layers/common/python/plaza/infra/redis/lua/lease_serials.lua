--[[ lease_serials: lease a block of the day's serials, each of them once.

  KEYS[1]  {<shard>}:ids:serials  hash: at, the latest time, milliseconds since 1970; last, the newest serial of its day
  ARGV[1]  count: size of the block

  Returns {day, first}, the day since 1970 in UTC; or {wait}, the milliseconds until serials are free

  Safe to repeat: it leases another block; the first one stays unused. ]]
-- Serials advance with the clock, never behind it and at most 1 s ahead of it. A Redis without the key
-- begins 1 s ahead: all serials that it leased before it lost its data are below.
local SERIALS_PER_MS, MAX_AHEAD_SERIALS, DAY_MS = 49, 49000, 86400000
local now, count = redis.call('TIME'), tonumber(ARGV[1])
local stored = redis.call('HMGET', KEYS[1], 'at', 'last')
local stored_at_ms = tonumber(stored[1] or 0)
-- A clock that went back counts as stopped until it has caught up.
local at_ms = math.max(now[1] * 1000 + math.floor(now[2] / 1000), stored_at_ms)
local day, by_clock = math.floor(at_ms / DAY_MS), at_ms % DAY_MS * SERIALS_PER_MS

local last = by_clock
if not stored[1] then last = by_clock + MAX_AHEAD_SERIALS end
if math.floor(stored_at_ms / DAY_MS) == day then last = math.max(last, tonumber(stored[2])) end
local excess = last + count - by_clock - MAX_AHEAD_SERIALS
local granted = excess > 0 and 0 or count
redis.call('HSET', KEYS[1], 'at', string.format('%.0f', at_ms), 'last', string.format('%.0f', last + granted))
redis.call('EXPIRE', KEYS[1], 172800)
if excess > 0 then return {math.ceil(excess / SERIALS_PER_MS)} end
return {day, last + 1}

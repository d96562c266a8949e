--[[ lease_serials: a block of the day's serials that nobody else ever gets.

  KEYS[1]  {<shard>}:ids:serials  hash: day, since 1970 in UTC; last, the newest serial given out that day
  ARGV[1]  count: how many

  Returns {day, first}, or false when the day has none left

  Safe to repeat: it leases another block, and the first one stays unused. ]]
-- Serials never run behind the clock: what a Redis leased that lost its data is not leased again.
local SERIALS_PER_MS = 49
local MOST_SERIAL = 4294967295
local now = redis.call('TIME')
local today = math.floor(now[1] / 86400)
local by_clock = (now[1] % 86400 * 1000 + math.floor(now[2] / 1000)) * SERIALS_PER_MS

local held = redis.call('HMGET', KEYS[1], 'day', 'last')
local day, last = today, by_clock
if held[1] and tonumber(held[1]) == today then last = math.max(by_clock, tonumber(held[2])) end
if held[1] and tonumber(held[1]) > today then -- the clock went back over midnight
  day, last = tonumber(held[1]), tonumber(held[2])
end
if last + ARGV[1] > MOST_SERIAL then return false end
redis.call('HSET', KEYS[1], 'day', day, 'last', string.format('%.0f', last + ARGV[1]))
redis.call('EXPIRE', KEYS[1], 172800)
return {day, last + 1}

--[[ look_near: the shops around a place, nearest first, from behind one of them on.

  KEYS[1]  {<shard>}:shops:<set>:meta    hash: built_at, filling_by, filling_at, asked_at
  KEYS[2]  {<shard>}:shops:<set>:places  zset: shop -> place (GEO)
  ARGV[1]  longitude
  ARGV[2]  latitude
  ARGV[3]  radius, metres
  ARGV[4]  the radius to begin with, metres: what is near is looked for nearby
  ARGV[5]  behind this distance, in tenths of a millimetre
  ARGV[6]  and behind this shop among those of the same distance
  ARGV[7]  how many
  ARGV[8]  the most that are looked at: who is farther than so many isn't found
  ARGV[9]  after how long a set is to be built again, milliseconds
  ARGV[10]  after how long somebody else is asked to have it built, milliseconds

  Returns {whole, ask, shop, distance, shop, distance, ...}
    whole  1 it is the set that was asked; 0 there is none
    ask  1 the caller is to ask for its build

  Safe to repeat: who repeats it isn't asked again, and the next after a while is. ]]
local GROWTH = 3 -- of the radius, from try to try
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local meta = redis.call('HMGET', KEYS[1], 'built_at', 'asked_at')
local ask = 0
if not meta[1] or now_ms - meta[1] > tonumber(ARGV[9]) then
  if not meta[2] or now_ms - meta[2] > tonumber(ARGV[10]) then
    redis.call('HSET', KEYS[1], 'asked_at', now_ms)
    ask = 1
  end
end
if not meta[1] then return {0, ask} end

local radius, within = tonumber(ARGV[3]), tonumber(ARGV[4])
local behind, behind_shop, count, most = tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])
local function is_lower(a, b) -- ids have 63 bits, numbers here only 53
  return #a < #b or #a == #b and a < b
end
local page
repeat
  within = math.min(within, radius)
  local found = redis.call('GEOSEARCH', KEYS[2], 'FROMLONLAT', ARGV[1], ARGV[2], 'BYRADIUS', within, 'm',
    'ASC', 'COUNT', most, 'WITHDIST')
  page = {}
  for _, near in ipairs(found) do
    local at = math.floor(near[2] * 10000 + 0.5)
    -- Those of one distance come in any order: all of them are needed to put them in theirs.
    if #page >= count and at > page[#page][2] then break end
    if at > behind or at == behind and is_lower(behind_shop, near[1]) then page[#page + 1] = {near[1], at} end
  end
  local enough = #page >= count or #found >= most or within >= radius
  within = within * GROWTH
until enough

table.sort(page, function(a, b) return a[2] < b[2] or a[2] == b[2] and is_lower(a[1], b[1]) end)
local answer = {1, ask}
for i = 1, math.min(count, #page) do
  answer[2 * i + 1], answer[2 * i + 2] = page[i][1], page[i][2]
end
return answer

--[[ find_denied: who of some actors would be taken for off without a look at MySQL.

  KEYS[1]  {<shard>}:<kind>:<target>:meta     hash: total, ver, dbver, complete, bloom, ...
  KEYS[2]  {<shard>}:<kind>:<target>:pending  hash: actor -> state:ver:total
  KEYS[3]  {<shard>}:<kind>:<target>:recent   zset: actor -> ver
  KEYS[4]  {<shard>}:<kind>:<target>:older    bitmap: Bloom filter
  ARGV[1...]  actors, at most a page of them

  Returns {actor, ...}: those who are neither pending nor in recent, and of whom complete or the filter says no

  Safe to repeat: it only reads. ]]
--!include bloom
--!include state
local AT_ONCE = 100 -- actors whose bits one command asks for
local pending, recent, older = KEYS[2], KEYS[3], KEYS[4]
local meta = read_meta(KEYS[1])
if not meta or not (meta.complete or meta.bloom > 0) then return {} end

-- How many of the bits of each actor are set; nobody's when recent has everybody.
local function count_bits(first, last)
  if meta.complete then return {} end
  local asked, counts = {}, {}
  for i = first, last do
    for _, position in ipairs({bloom_positions(meta.bloom, ARGV[i])}) do
      local n = #asked
      asked[n + 1], asked[n + 2], asked[n + 3] = 'GET', 'u1', position
    end
  end
  for n, bit in ipairs(redis.call('BITFIELD', older, unpack(asked))) do
    local i = first + math.floor((n - 1) / 4)
    counts[i] = (counts[i] or 0) + bit
  end
  return counts
end

local denied = {}
for first = 1, #ARGV, AT_ONCE do
  local last = math.min(first + AT_ONCE - 1, #ARGV)
  local counts = count_bits(first, last)
  for i = first, last do
    if counts[i] ~= 4 and not redis.call('ZSCORE', recent, ARGV[i])
      and redis.call('HEXISTS', pending, ARGV[i]) == 0 then
      denied[#denied + 1] = ARGV[i]
    end
  end
end
return denied

--[[ find_denied: find the actors that recent and the Bloom filter report as off.

  KEYS[1]  {<shard>}:<kind>:<target>:meta    hash: term, mode, db_version, ...
  KEYS[2]  {<shard>}:<kind>:<target>:recent  zset: actor -> version, the newest saved actors
  KEYS[3]  {<shard>}:<kind>:<target>:bloom   bitmap: Bloom filter of saved actors that are not in recent
  ARGV[1]  term of this node
  ARGV[2...]  actors

  Bounded by: 250 actors a page.

  Returns {db_version, actor, ...}: the target's version, and the actors that are off, whatever the outbox has; an empty
          list when the target is not loaded, or is neither complete nor has a filter with its seal

  Safe to repeat: it only reads. ]]
--!include bloom
--!include meta
local CHUNK = 100 -- actors whose bits one command reads
local recent, filter = KEYS[2], KEYS[3]
local meta = read_meta(KEYS[1], ARGV[1])
if not meta then return {} end
if not meta.complete and (meta.bloom == 0 or redis.call('GETBIT', filter, meta.bloom) == 0) then return {} end

-- Returns how many of the 4 bits of each actor are set; an empty table when recent has all actors.
local function count_bits(first, last)
  if meta.complete then return {} end
  local reads, counts = {}, {}
  for i = first, last do
    for _, offset in ipairs({bloom_offsets(meta.bloom, ARGV[i])}) do
      local n = #reads
      reads[n + 1], reads[n + 2], reads[n + 3] = 'GET', 'u1', offset
    end
  end
  for n, bit in ipairs(redis.call('BITFIELD', filter, unpack(reads))) do
    local i = first + math.floor((n - 1) / 4)
    counts[i] = (counts[i] or 0) + bit
  end
  return counts
end

local denied = {string.format('%.0f', meta.db_version)}
for first = 2, #ARGV, CHUNK do
  local last = math.min(first + CHUNK - 1, #ARGV)
  local counts = count_bits(first, last)
  for i = first, last do
    if counts[i] ~= 4 and not redis.call('ZSCORE', recent, ARGV[i]) then
      denied[#denied + 1] = ARGV[i]
    end
  end
end
return denied

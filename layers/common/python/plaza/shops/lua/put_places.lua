--[[ put_places: store or remove the places of shops in a set, and in the set that is being built.

  KEYS[1]  {<shard>}:shops:<set>:meta          hash: built_at, build_id, build_active_at, build_requested_at
  KEYS[2]  {<shard>}:shops:<set>:places        zset: shop -> place (GEO)
  KEYS[3]  {<shard>}:shops:<set>:versions      hash: shop -> version, or minus the end of its removal
  KEYS[4]  {<shard>}:shops:<set>:places:next   zset: the set that is being built
  KEYS[5]  {<shard>}:shops:<set>:versions:next  hash: its versions
  ARGV[1]  time for which rows of a shop that was removed from MySQL are refused, seconds
  ARGV[2...]  for each shop: id, version, longitude, latitude; the latter two are '' if it is not in the set,
              the version too if MySQL has no row

  Bounded by: 200 shops a call, which the caller ensures.

  Returns {shop, ...}: shops to put again after that time, because they were removed less than that time ago

  Safe to repeat: of two versions of a shop the newer stays. ]]
--!include places
local places, versions, next_places, next_versions = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local now_s = tonumber(redis.call('TIME')[1])
local meta = redis.call('HMGET', KEYS[1], 'built_at', 'build_id')
local shops = {}
for i = 2, #ARGV, 4 do
  shops[#shops + 1] = {id = ARGV[i], version = ARGV[i + 1], x = ARGV[i + 2], y = ARGV[i + 3], removed_ttl_s = ARGV[1]}
end
-- A removed shop that the set never had needs no entry, except during a build, which may have read it before.
local recheck = meta[1] and put_places(places, versions, shops, now_s, true) or {}
if meta[2] then
  local next_recheck = put_places(next_places, next_versions, shops, now_s, false)
  if not meta[1] then recheck = next_recheck end
end
return recheck

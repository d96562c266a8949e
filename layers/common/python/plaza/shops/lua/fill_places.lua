--[[ fill_places: add a page of shops to the set that is being built; after the last page, swap the set in.

  KEYS[1]  {<shard>}:shops:<set>:meta         hash: built_at, build_id, build_active_at, build_requested_at
  KEYS[2]  {<shard>}:shops:<set>:places       zset: shop -> place (GEO)
  KEYS[3]  {<shard>}:shops:<set>:versions     hash: shop -> version, or minus the end of its removal
  KEYS[4]  {<shard>}:shops:<set>:places:next  zset: the set that is being built
  KEYS[5]  {<shard>}:shops:<set>:versions:next  hash: its versions
  ARGV[1]  build: the name that it began with
  ARGV[2]  1 if this page is the last, else 0
  ARGV[3...]  for each shop: id, version, longitude, latitude

  Bounded by: 200 shops a call, which the caller ensures.

  Returns FILLED, FINISHED, or LOST (the keys of the build expired, or another build took over)

  Safe to repeat: of two versions of a shop the newer stays; after the end it returns LOST. ]]
--!include build
--!include places
local places, versions, next_places, next_versions = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
if redis.call('HGET', KEYS[1], 'build_id') ~= ARGV[1] then return 'LOST' end
if redis.call('EXISTS', next_versions) == 0 then return 'LOST' end
local shops = {}
for i = 3, #ARGV, 4 do
  shops[#shops + 1] = {id = ARGV[i], version = ARGV[i + 1], x = ARGV[i + 2], y = ARGV[i + 3]}
end
put_places(next_places, next_versions, shops, math.floor(build_time_ms() / 1000), false)
if ARGV[2] ~= '1' then
  touch_build(KEYS[1])
  return 'FILLED'
end
swap_in_build(next_places, places)
swap_in_build(next_versions, versions)
finish_build(KEYS[1], 'built_at', build_time_ms())
return 'FINISHED'

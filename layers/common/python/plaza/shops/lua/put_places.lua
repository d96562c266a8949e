--[[ put_places: tell a set of places where shops are by now, or that they aren't in it.

  KEYS[1]  {<shard>}:shops:<set>:meta          hash: built_at, build_id, build_active_at, build_requested_at
  KEYS[2]  {<shard>}:shops:<set>:places        zset: shop -> place (GEO)
  KEYS[3]  {<shard>}:shops:<set>:versions          hash: shop -> version, or until when it is taken out
  KEYS[4]  {<shard>}:shops:<set>:places:next   zset: the set that is being built
  KEYS[5]  {<shard>}:shops:<set>:versions:next     hash: its versions
  ARGV[1]  for how long a shop that was taken out of MySQL refuses what was read before, seconds
  ARGV[2...]  of each shop once: id, version, longitude, latitude; '' and '' for the latter when it isn't in the set,
              '' for the version too when MySQL has no such row

  Bounded by: 200 shops a call, which the caller sees to.

  Returns {shop, ...}: those to be told once more after that time, because they were taken out now or a moment ago

  Safe to repeat: of two versions of a shop the newer stays. ]]
--!include places
local places, versions, next_places, next_versions = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local now_s = tonumber(redis.call('TIME')[1])
local meta = redis.call('HMGET', KEYS[1], 'built_at', 'build_id')
local shops = {}
for i = 2, #ARGV, 4 do
  shops[#shops + 1] = {id = ARGV[i], version = ARGV[i + 1], x = ARGV[i + 2], y = ARGV[i + 3], removed_ttl_s = ARGV[1]}
end
-- Who was never in the set need not be remembered as gone; but a page of a build may be late.
local recheck = meta[1] and put_places(places, versions, shops, now_s, true) or {}
if meta[2] then
  local of_next = put_places(next_places, next_versions, shops, now_s, false)
  if not meta[1] then recheck = of_next end
end
return recheck

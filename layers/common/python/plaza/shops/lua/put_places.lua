--[[ put_places: tell a set of places where shops are by now, or that they aren't in it.

  KEYS[1]  {<shard>}:shops:<set>:meta          hash: built_at, filling_by, filling_at, asked_at
  KEYS[2]  {<shard>}:shops:<set>:places        zset: shop -> place (GEO)
  KEYS[3]  {<shard>}:shops:<set>:vers          hash: shop -> version
  KEYS[4]  {<shard>}:shops:<set>:places:next   zset: the set that is being built
  KEYS[5]  {<shard>}:shops:<set>:vers:next     hash: its versions
  ARGV[1...]  of each shop its id, version, longitude and latitude; '' and '' when it isn't in the set

  Returns 1 the set is in use or being built, 0 it is neither: its build will find what MySQL has

  Safe to repeat: of two versions of a shop the newer stays. ]]
--!include places
local places, vers, next_places, next_vers = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local meta = redis.call('HMGET', KEYS[1], 'built_at', 'filling_by')
for i = 1, #ARGV, 4 do
  local shop, ver, x, y = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  -- Who was never in the set need not be remembered as gone; but a page of a build may be late.
  if meta[1] and (x ~= '' or redis.call('HEXISTS', vers, shop) == 1) then
    put_place(places, vers, shop, ver, x, y)
  end
  if meta[2] then put_place(next_places, next_vers, shop, ver, x, y) end
end
return (meta[1] or meta[2]) and 1 or 0

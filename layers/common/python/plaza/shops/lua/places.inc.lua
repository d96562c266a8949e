-- places: where shops are, in a GEO set, and beside it the version of each that was heard of. The newest stays.
local function put_place(places_key, vers_key, shop, ver, x, y)
  local held = redis.call('HGET', vers_key, shop)
  if held and tonumber(held) > tonumber(ver) then return end
  redis.call('HSET', vers_key, shop, ver)
  if x == '' then
    redis.call('ZREM', places_key, shop)
  else
    redis.call('GEOADD', places_key, x, y, shop)
  end
end

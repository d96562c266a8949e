-- places: the places of shops in a GEO set, and the version of each; the newest version stays.
-- Instead of a version, a shop that was removed from MySQL has minus the time until which its rows are refused, as
-- they may have been read before the removal. After that time a row means that the shop was restored.
local function put_places(places_key, versions_key, shops, now_s, known_only)
  local ids, recheck = {}, {}
  for i, shop in ipairs(shops) do ids[i] = shop.id end
  if #ids == 0 then return recheck end
  local known_versions = redis.call('HMGET', versions_key, unpack(ids))
  local versions, put, removed = {}, {}, {}
  for i, shop in ipairs(shops) do
    local version = tonumber(known_versions[i] or '')
    local is_placed = shop.x ~= ''
    if shop.version == '' then
      if not version or version >= 0 then
        if version or not known_only then
          versions[#versions + 1] = shop.id; versions[#versions + 1] = -(now_s + shop.removed_ttl_s)
        end
        if version then removed[#removed + 1] = shop.id; recheck[#recheck + 1] = shop.id end
      end
    elseif version and version < 0 and now_s < -version then
      if is_placed then recheck[#recheck + 1] = shop.id end
    elseif not version or version <= tonumber(shop.version) then
      if is_placed or version or not known_only then
        versions[#versions + 1] = shop.id; versions[#versions + 1] = shop.version
      end
      if is_placed then
        put[#put + 1] = shop.x; put[#put + 1] = shop.y; put[#put + 1] = shop.id
      elseif version then
        removed[#removed + 1] = shop.id
      end
    end
  end
  if #versions > 0 then redis.call('HSET', versions_key, unpack(versions)) end
  if #removed > 0 then redis.call('ZREM', places_key, unpack(removed)) end
  if #put > 0 then redis.call('GEOADD', places_key, unpack(put)) end
  return recheck
end

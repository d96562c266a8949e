-- places: where shops are, in a GEO set, and beside it the version of each that was heard of. The newest stays.
-- A shop that was taken out of MySQL has no version: its entry is the time, negative, until which what was read
-- before is refused. After that any row of it is news: it was restored.
local function put_places(places_key, vers_key, shops, now_s, known_only)
  local ids, again = {}, {}
  for i, shop in ipairs(shops) do ids[i] = shop.id end
  if #ids == 0 then return again end
  local heard = redis.call('HMGET', vers_key, unpack(ids))
  local vers, put, gone = {}, {}, {}
  for i, shop in ipairs(shops) do
    local ver = tonumber(heard[i] or '')
    local is_there = shop.x ~= ''
    if shop.ver == '' then
      if not ver or ver >= 0 then
        if ver or not known_only then vers[#vers + 1] = shop.id; vers[#vers + 1] = -(now_s + shop.taken_out_s) end
        if ver then gone[#gone + 1] = shop.id; again[#again + 1] = shop.id end
      end
    elseif ver and ver < 0 and now_s < -ver then
      if is_there then again[#again + 1] = shop.id end
    elseif not ver or ver <= tonumber(shop.ver) then
      if is_there or ver or not known_only then vers[#vers + 1] = shop.id; vers[#vers + 1] = shop.ver end
      if is_there then
        put[#put + 1] = shop.x; put[#put + 1] = shop.y; put[#put + 1] = shop.id
      elseif ver then
        gone[#gone + 1] = shop.id
      end
    end
  end
  if #vers > 0 then redis.call('HSET', vers_key, unpack(vers)) end
  if #gone > 0 then redis.call('ZREM', places_key, unpack(gone)) end
  if #put > 0 then redis.call('GEOADD', places_key, unpack(put)) end
  return again
end

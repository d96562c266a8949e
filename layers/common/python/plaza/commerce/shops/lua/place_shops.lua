--[[ place_shops: store shops in a cell, or remove them from it, each unless the cell has a later move.

  KEYS[1]  {<shard>}:shops:cells           set: the cells of this shard that may have shops
  KEYS[2]  {<shard>}:shops:<cell>:moves    hash: shop -> its last move in this cell
  KEYS[3...]  {<shard>}:shops:<cell>:<set>  zset: shop -> place (GEO); of all shops first, then of each type
  ARGV[1]  cell
  ARGV[2...]  for each shop: id, move, number of the set of its type (1: it has none; 0: it is not in this cell), x, y

  Bounded by: 200 shops a call, which the caller ensures.

  Returns the number of shops whose move was applied

  Safe to repeat: the latest move of a shop stays. ]]
local ids = {}
for i = 2, #ARGV, 5 do ids[#ids + 1] = ARGV[i] end
local known, moves, applied = redis.call('HMGET', KEYS[2], unpack(ids)), {}, {}
for i = 1, #ids do
  local move = ARGV[5 * i - 2]
  if not known[i] or tonumber(known[i]) <= tonumber(move) then
    moves[#moves + 1] = ids[i]; moves[#moves + 1] = move
    applied[#applied + 1] = {id = ids[i], set = tonumber(ARGV[5 * i - 1]), x = ARGV[5 * i], y = ARGV[5 * i + 1]}
  end
end
if #applied == 0 then return 0 end
redis.call('SADD', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[2], unpack(moves))
for k = 3, #KEYS do
  local key = KEYS[k]
  local put, removed = {}, {}
  for _, shop in ipairs(applied) do
    if shop.set > 0 and (k == 3 or k == shop.set + 2) then
      put[#put + 1] = shop.x; put[#put + 1] = shop.y; put[#put + 1] = shop.id
    else
      removed[#removed + 1] = shop.id
    end
  end
  if #removed > 0 then redis.call('ZREM', key, unpack(removed)) end
  if #put > 0 then redis.call('GEOADD', key, unpack(put)) end
end
return #applied

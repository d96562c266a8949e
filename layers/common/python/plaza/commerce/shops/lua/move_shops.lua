--[[ move_shops: decide which places of shops are newer, and return the cells that have to change.

  KEYS[1]  {<shard>}:shops:placed  hash: shop -> <version>;<move>;<cells that may have it, comma-separated>
  ARGV[1]  time for which rows of a shop that was removed from MySQL are refused, seconds
  ARGV[2...]  for each shop: id, version, cell; the cell is '' if it has no place, the version too if MySQL has no row

  Instead of a version, a shop that was removed from MySQL has minus the time until which its rows are refused, as they
  may have been read before the removal. After that time a row means that the shop was restored.

  Bounded by: 200 shops a call, which the caller ensures; 4 cells each.

  Returns {{shop, ...}, shop, move, cells, shop, move, cells, ...}: first the shops to put again after that time, then
  those to store in their cell and to remove from the other cells, as long as these have no later move

  Safe to repeat: of two versions of a shop the newer stays; a repeat is a later move to the same cell. ]]
local MAX_CELLS = 4
local time = redis.call('TIME')
local now_s, now_us = tonumber(time[1]), time[1] * 1000000 + time[2]
local ids = {}
for i = 2, #ARGV, 3 do ids[#ids + 1] = ARGV[i] end
local known, changed, recheck, moves = redis.call('HMGET', KEYS[1], unpack(ids)), {}, {}, {}
for i = 1, #ids do
  local id, new, cell = ids[i], ARGV[3 * i], ARGV[3 * i + 1]
  local version, last_move, cells = string.match(known[i] or '', '^(-?%d+);(%d+);(.*)$')
  version = tonumber(version)
  local accepted
  if new == '' then
    accepted = not version or version >= 0
    if accepted and version then recheck[#recheck + 1] = id end
    new = string.format('%d', -(now_s + ARGV[1]))
  elseif version and version < 0 and now_s < -version and -version <= now_s + 2 * ARGV[1] then -- or a clock went back
    accepted = false
    if cell ~= '' then recheck[#recheck + 1] = id end
  else
    accepted = not version or version <= tonumber(new)
  end
  if accepted then
    local move = string.format('%d', math.max(now_us, (tonumber(last_move) or 0) + 1))
    local kept = {}
    if cell ~= '' then kept[1] = cell end
    for former in string.gmatch(cells or '', '%d+') do
      if former ~= cell and #kept < MAX_CELLS then kept[#kept + 1] = former end
    end
    local all = table.concat(kept, ',')
    changed[#changed + 1] = id; changed[#changed + 1] = new .. ';' .. move .. ';' .. all
    moves[#moves + 1] = id; moves[#moves + 1] = move; moves[#moves + 1] = all
  end
end
if #changed > 0 then redis.call('HSET', KEYS[1], unpack(changed)) end
return {recheck, unpack(moves)}

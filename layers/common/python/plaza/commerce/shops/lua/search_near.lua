--[[ search_near: return the shops of one cell around a place, nearest first, after a given shop.

  KEYS[1]  {<shard>}:shops:places:meta    hash: built_at, build_requested_at
  KEYS[2]  {<shard>}:shops:<cell>:<set>   zset: shop -> place (GEO)
  ARGV[1]  x: longitude
  ARGV[2]  y: latitude
  ARGV[3]  radius_m: radius, metres
  ARGV[4]  after_distance: distance after which the page begins, tenths of a millimetre
  ARGV[5]  after_shop: shop after which the page begins, among the shops at that distance
  ARGV[6]  max_found: maximum number of shops to return
  ARGV[7]  max_cells: maximum number of cells to count
  ARGV[8]  max_shops: maximum number of shops to measure
  ARGV[9]  rebuild_after_ms: age at which places are built again, milliseconds
  ARGV[10]  request_interval_ms: minimum time between two requests for a build, milliseconds
  ARGV[11]  column: column of the lowest corner of the cell, in steps of a GEO set
  ARGV[12]  row: row of the same
  ARGV[13]  side: side of the cell, in steps
  ARGV[14]  first_score: score of the first place in the cell

  Bounded by: ARGV[7] cells and ARGV[8] shops, whatever the radius.

  Returns {is_built, build_due, truncated, complete_to, shop, distance, shop, distance, ...}
    is_built  1 the cell was searched; 0 the places of this shard are not built
    build_due  1 the caller must request a build
    truncated  1 the limit of cells or shops was reached
    complete_to  distance up to which all shops are found, if truncated

  Safe to repeat: a repeat does not return build_due; a later caller gets it instead. ]]
--!include build
--!include cells
local now_ms = build_time_ms()
local meta = redis.call('HMGET', KEYS[1], 'built_at', 'build_requested_at')
local is_due = not meta[1] or now_ms - meta[1] > tonumber(ARGV[9])
local build_due = request_build(KEYS[1], is_due, meta[2], now_ms, ARGV[10])
if not meta[1] then return {0, build_due, 0, 0} end

local places = KEYS[2]
local LEAF = 8 -- a cell of at most so many shops is read, a larger one is split into four
local SLACK = 10 -- tenths of a millimetre: exceeds the rounding errors of the bounds of cells
local x, y, max_distance = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]) * 10000
local after, after_shop, count = tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6])
local cells, shops = tonumber(ARGV[7]), tonumber(ARGV[8])
local cos_y = cos(y * CELL_RADIANS)
local within, beyond = cell_of_metres((max_distance + SLACK) / 10000), cell_of_metres(max(after - SLACK, 0) / 10000)

local function is_lower(a, b) -- ids have 63 bits, Lua numbers only 53
  return #a < #b or #a == #b and a < b
end

-- A heap of cells and shops, the nearest on top. The key of a shop is its distance in tenths of a millimetre; the key
-- of a cell is a lower bound of the distances in it.
local keys, items, size = {}, {}, 0
local function push(key, item)
  size = size + 1
  local i = size
  while i > 1 do
    local parent = floor(i / 2)
    if keys[parent] <= key then break end
    keys[i], items[i] = keys[parent], items[parent]
    i = parent
  end
  keys[i], items[i] = key, item
end
local function pop()
  local top, key, item = items[1], keys[size], items[size]
  keys[size], items[size], size = nil, nil, size - 1
  local i, child = 1, 2
  while child <= size do
    if child < size and keys[child + 1] < keys[child] then child = child + 1 end
    if keys[child] >= key then break end
    keys[i], items[i] = keys[child], items[child]
    i, child = child, child * 2
  end
  if size > 0 then keys[i], items[i] = key, item end
  return top
end

local function read(cell)
  local last = cell.first + cell.side * cell.side - 1
  local members = redis.call('ZRANGE', places, cell.first, last, 'BYSCORE', 'LIMIT', 0, cell.shops, 'WITHSCORES')
  for i = 1, #members, 2 do
    local shop = members[i]
    local distance = floor(cell_place_distance(x, y, cos_y, cell, tonumber(members[i + 1])) * 10000 + 0.5)
    if distance <= max_distance and (distance > after or distance == after and is_lower(after_shop, shop)) then
      push(distance, shop)
    end
  end
  shops = shops - cell.shops
end

local function split(cell)
  local side, left = cell.side / 2, cell.shops
  local span, rows = side * side, {}
  for row = 0, 1 do rows[row] = {cell_row(y, cell.iy + row * side, side)} end
  for column = 0, 1 do
    local near_x, far_x = cell_column(x, cell.ix + column * side, side)
    for row = 0, 1 do
      local near_y, far_y, min_cos, max_cos = unpack(rows[row])
      local nearest, farthest = near_y + cos_y * min_cos * near_x, far_y + cos_y * max_cos * far_x
      if left > 0 and nearest <= within and farthest >= beyond then
        local first = cell.first + (2 * column + row) * span
        local inside = redis.call('ZCOUNT', places, first, first + span - 1)
        cells, left = cells - 1, left - inside
        if inside > 0 then
          push(cell_metres(nearest) * 10000 - SLACK, {
            ix = cell.ix + column * side, iy = cell.iy + row * side, side = side, first = first, shops = inside,
          })
        end
      end
    end
  end
end

-- Shops of equal distance leave the heap in any order, so all of them are read before they are sorted by id.
local page, last, truncated, complete_to = {}, nil, 0, 0
local inside = redis.call('ZCARD', places)
if inside > 0 then
  push(-SLACK, {
    ix = tonumber(ARGV[11]), iy = tonumber(ARGV[12]), side = tonumber(ARGV[13]), first = tonumber(ARGV[14]),
    shops = inside,
  })
end
while size > 0 and truncated == 0 and (#page < count or keys[1] <= last) do
  local distance, item = keys[1], pop()
  if type(item) == 'string' then
    page[#page + 1], last = {item, distance}, distance
  elseif item.shops <= LEAF or item.side == 1 then
    if item.shops > shops then truncated, complete_to = 1, floor(distance) else read(item) end
  elseif cells < 4 then
    truncated, complete_to = 1, floor(distance)
  else
    split(item)
  end
end
table.sort(page, function(a, b) return a[2] < b[2] or a[2] == b[2] and is_lower(a[1], b[1]) end)
local reply = {1, build_due, truncated, complete_to}
for i = 1, min(count, #page) do
  reply[2 * i + 3], reply[2 * i + 4] = page[i][1], page[i][2]
end
return reply

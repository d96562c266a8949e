-- cells: the grid of a GEO set. A cell is a square of `side` by `side` places with its lowest corner at (ix, iy). The
-- scores of its places are the `side * side` numbers from `first` on, so a cell is a range of scores.
local CELL_SIDE = 67108864 -- 2^26: places on one side of the whole grid
local CELL_MAX_LATITUDE = 85.05112878
local CELL_GLOBE_M = 6372797.560856
local CELL_RADIANS = math.pi / 180
-- Four bits of a score interleave two bits of the longitude and two of the latitude.
local CELL_LON = {[0] = 0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3}
local CELL_LAT = {[0] = 0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3}
local abs, asin, cos, floor, max, min, sin, sqrt =
  math.abs, math.asin, math.cos, math.floor, math.max, math.min, math.sin, math.sqrt

local function cell_longitude(ix) return ix / CELL_SIDE * 360 - 180 end

local function cell_latitude(iy) return iy / CELL_SIDE * 2 * CELL_MAX_LATITUDE - CELL_MAX_LATITUDE end

-- The haversine of the angle between two degrees: the square of the sine of half of it.
local function cell_haversine(from, to)
  local half = sin((from * CELL_RADIANS - to * CELL_RADIANS) / 2)
  return half * half
end

-- Convert a haversine to metres, and metres to a haversine.
local function cell_metres(a) return 2 * CELL_GLOBE_M * asin(sqrt(min(a, 1))) end

local function cell_of_metres(metres) return cell_haversine(metres / CELL_GLOBE_M / CELL_RADIANS, 0) end

-- Metres from (x, y), with the cosine of y, to the centre of the place with a score, which is in the cell.
local function cell_place_distance(x, y, cos_y, cell, score)
  local ix, iy, unit, rest = cell.ix, cell.iy, 1, score - cell.first
  while rest > 0 do
    local bits = rest % 16
    ix, iy = ix + CELL_LON[bits] * unit, iy + CELL_LAT[bits] * unit
    rest, unit = (rest - bits) / 16, unit * 4
  end
  local latitude = cell_latitude(iy + 0.5)
  local a = cell_haversine(y, latitude)
    + cos_y * cos(latitude * CELL_RADIANS) * cell_haversine(x, cell_longitude(ix + 0.5))
  return cell_metres(a)
end

-- A column of cells: haversines from the longitude x to its nearer and its farther side.
local function cell_column(x, ix, side)
  local half = side / CELL_SIDE * 180
  local middle = cell_longitude(ix) + half - x
  middle = abs(middle - 360 * floor(middle / 360 + 0.5))
  return cell_haversine(0, max(0, middle - half)), cell_haversine(0, min(180, middle + half))
end

-- A row of cells: haversines from the latitude y to its nearer and its farther side, and the smallest and the largest
-- cosine in it.
local function cell_row(y, iy, side)
  local south, north = cell_latitude(iy), cell_latitude(iy + side)
  local cos_south, cos_north = cos(south * CELL_RADIANS), cos(north * CELL_RADIANS)
  local max_cos = south < 0 and north > 0 and 1 or max(cos_south, cos_north)
  return cell_haversine(y, min(max(y, south), north)),
    max(cell_haversine(y, south), cell_haversine(y, north)), min(cos_south, cos_north), max_cos
end

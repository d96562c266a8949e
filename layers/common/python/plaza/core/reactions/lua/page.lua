--[[ page: read a page of the newest or earliest actors of a target, by version.

  KEYS[1]  {<shard>}:<kind>:<target>:meta      hash: term, mode, floor, earliest, ...
  KEYS[2]  {<shard>}:<kind>:<target>:recent    zset: actor -> version, the newest saved actors
  KEYS[3]  {<shard>}:<kind>:<target>:earliest  zset: actor -> version, the first page of the earliest saved actors
  ARGV[1]  term of this node
  ARGV[2]  first version, inclusive, or -inf or +inf
  ARGV[3]  asc or desc
  ARGV[4]  count: minimum of actors, if there are so many; of actors with the last version all are in the page

  Bounded by: ARGV[4] actors, and actors of equal versions.

  Returns {complete, actor, version, actor, version, ...}, or false when the target is not loaded
    complete  1 when recent has all actors; 2 when the page is the cached first page of the earliest; else 0

  Safe to repeat: it only reads. ]]
local m = redis.call('HMGET', KEYS[1], 'term', 'mode', 'floor', 'earliest')
if m[1] ~= ARGV[1] then return false end
local complete, count = string.find(m[2], ':complete$'), tonumber(ARGV[4])
local range = function(from, to, ...)
  return redis.call('ZRANGE', KEYS[2], from, to, 'BYSCORE', ...)
end

-- Redis orders equal versions by string, callers by number: a full page gets all of the last version.
local function complete_ties(key, page)
  if #page < 2 * count or count == 0 then return page end
  local last = page[#page]
  while #page > 0 and page[#page] == last do page[#page] = nil; page[#page] = nil end
  local ties = redis.call('ZRANGE', key, last, last, 'BYSCORE', 'WITHSCORES')
  for i = 1, #ties do page[#page + 1] = ties[i] end
  return page
end

local asc = ARGV[3] == 'asc'
if asc and ARGV[2] == '-inf' and not complete and m[4] then
  local first = redis.call('ZRANGE', KEYS[3], 0, count - 1, 'WITHSCORES')
  if #first > 0 then return {2, unpack(complete_ties(KEYS[3], first))} end
end
local last_of_all = asc and '+inf' or '-inf'
local function page_from(from)
  if asc then return range(from, last_of_all, 'LIMIT', 0, count, 'WITHSCORES') end
  return range(from, last_of_all, 'REV', 'LIMIT', 0, count, 'WITHSCORES')
end
-- Actors with the first version do not count: the caller may have listed them already.
local begin, actors = {}, nil
if tonumber(ARGV[2]) and math.abs(tonumber(ARGV[2])) ~= math.huge then
  begin = range(ARGV[2], ARGV[2], 'WITHSCORES')
  actors = page_from('(' .. ARGV[2])
else
  actors = page_from(ARGV[2])
end
actors = complete_ties(KEYS[2], actors)
for i = 1, #begin do actors[#actors + 1] = begin[i] end
if complete then return {1, unpack(actors)} end
-- recent has all saved actors above the floor; MySQL has the others.
local floor, above = tonumber(m[3]), {}
for i = 1, #actors, 2 do
  if tonumber(actors[i + 1]) > floor then above[#above + 1] = actors[i]; above[#above + 1] = actors[i + 1] end
end
return {0, unpack(above)}

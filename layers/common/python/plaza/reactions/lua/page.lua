--[[ page: a page of the newest actors of a target, in the order of their versions.

  KEYS[1]  {<shard>}:<kind>:<target>:meta    hash: complete, ...
  KEYS[2]  {<shard>}:<kind>:<target>:recent  zset: actor -> ver
  ARGV[1]  the version to begin with, inclusive, or -inf or +inf
  ARGV[2]  asc or desc
  ARGV[3]  count: at least so many, and never a part of those with equal versions

  Returns {complete, actor, ver, actor, ver, ...}, or false when the target isn't in Redis
    complete  1 when recent has everybody

  Safe to repeat: it only reads. ]]
local complete = redis.call('HGET', KEYS[1], 'complete')
if not complete then return false end
local count = tonumber(ARGV[3])
local range = function(from, to, ...)
  return redis.call('ZRANGE', KEYS[2], from, to, 'BYSCORE', ...)
end
local asc = ARGV[2] == 'asc'
local last_of_all = asc and '+inf' or '-inf'
local function page_from(from)
  if asc then return range(from, last_of_all, 'LIMIT', 0, count, 'WITHSCORES') end
  return range(from, last_of_all, 'REV', 'LIMIT', 0, count, 'WITHSCORES')
end
-- Those with the version to begin with come on top of the count: the caller may know them already.
local begin, found = {}, nil
if tonumber(ARGV[1]) and math.abs(tonumber(ARGV[1])) ~= math.huge then
  begin = range(ARGV[1], ARGV[1], 'WITHSCORES')
  found = page_from('(' .. ARGV[1])
else
  found = page_from(ARGV[1])
end
-- Equal versions stand in the order of strings here and of numbers elsewhere: give all of them or none.
if #found == 2 * count and count > 0 then
  local last = found[#found]
  while #found > 0 and found[#found] == last do found[#found] = nil; found[#found] = nil end
  local ties = range(last, last, 'WITHSCORES')
  for i = 1, #ties do found[#found + 1] = ties[i] end
end
for i = 1, #begin do found[#found + 1] = begin[i] end
if complete == '1' then return {1, unpack(found)} end
-- Of those with the lowest version some may have fallen out: they are MySQL's to tell.
local lowest, whole = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2], {}
for i = 1, #found, 2 do
  if found[i + 1] ~= lowest then whole[#whole + 1] = found[i]; whole[#whole + 1] = found[i + 1] end
end
return {0, unpack(whole)}

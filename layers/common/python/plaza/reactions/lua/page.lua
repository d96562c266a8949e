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
local found
if ARGV[2] == 'asc' then
  found = range(ARGV[1], '+inf', 'LIMIT', 0, count, 'WITHSCORES')
else
  found = range(ARGV[1], '-inf', 'REV', 'LIMIT', 0, count, 'WITHSCORES')
end
-- Equal versions stand in the order of strings here and of numbers elsewhere: give all of them or none.
if #found == 2 * count and count > 0 then
  local last = found[#found]
  while #found > 0 and found[#found] == last do found[#found] = nil; found[#found] = nil end
  local ties = range(last, last, 'WITHSCORES')
  for i = 1, #ties do found[#found + 1] = ties[i] end
end
return {tonumber(complete), unpack(found)}

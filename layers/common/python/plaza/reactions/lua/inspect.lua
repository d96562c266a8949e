--[[ inspect: what Redis holds of a target, and a fingerprint of its newest actors.

  KEYS[1]  {<shard>}:<kind>:<target>:meta     hash: total, dbver, waiting, complete, bloom, ...
  KEYS[2]  {<shard>}:<kind>:<target>:pending  hash: actor -> state:ver:total
  KEYS[3]  {<shard>}:<kind>:<target>:recent   zset: actor -> ver
  ARGV[1]  most: how many of the newest actors are looked at

  Returns {total, dbver, waiting, pending, complete, bloom, floor, actors, sum, vers}, or false when it isn't in Redis
    total, dbver, waiting, complete, bloom  as they stand in meta, strings
    pending  how many are in the outbox
    floor    the fingerprint is of everybody with a ver above it; -1 of nobody
    actors   how many these are
    sum      of their ids, of each the last nine digits
    vers     the sum of their vers, of each the last nine digits

  Safe to repeat: it only reads, and nothing lives longer for it. ]]
local recent, most = KEYS[3], tonumber(ARGV[1])
local m = redis.call('HMGET', KEYS[1], 'total', 'dbver', 'waiting', 'complete', 'bloom')
if not (m[1] or m[2] or m[3]) then return false end

local newest = redis.call('ZRANGE', recent, 0, most - 1, 'REV', 'WITHSCORES')
-- Of those at the lowest ver some may have fallen out: only above it recent has everybody.
local floor = -1
if m[4] == '1' and redis.call('ZCARD', recent) <= most then floor = 0
elseif #newest > 0 then floor = tonumber(newest[#newest]) end

local actors, sum, vers = 0, 0, 0
local number, last, fmod = tonumber, string.sub, math.fmod -- a global is looked up each time
for i = 1, #newest, 2 do
  local ver = number(newest[i + 1])
  if ver <= floor then break end
  actors = actors + 1
  sum = sum + (number(last(newest[i], -9)) or 0)
  vers = vers + fmod(ver, 1000000000)
end
return {m[1] or '', m[2] or '', m[3] or '', redis.call('HLEN', KEYS[2]), m[4] or '', m[5] or '',
  string.format('%.0f', floor), actors, sum, vers}

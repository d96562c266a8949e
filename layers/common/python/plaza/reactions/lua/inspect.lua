--[[ inspect: what Redis holds of a target, and a fingerprint of its newest actors.

  KEYS[1]  {<shard>}:<kind>:<target>:meta    hash: s, base, delta, waiting, complete, bloom, floor, blocked, ...
  KEYS[2]  {<shard>}:<kind>:<target>:outbox  hash: actor -> want:ver:base:nonce
  KEYS[3]  {<shard>}:<kind>:<target>:recent  zset: actor -> ver, the newest saved actors
  ARGV[1]  run_id of this node
  ARGV[2]  how many of the newest actors are looked at

  Bounded by: ARGV[2] actors.

  Returns {s, base, delta, waiting, entries, complete, bloom, floor, blocked, actors, sum, vers}, or false when not loaded
    s, base, delta, waiting, complete, bloom  as they stand in meta, strings
    entries  how many the outbox has
    floor    the fingerprint is of all actors with a ver above it; -1 of none
    blocked  since when a commit is missing, microseconds; '' when none is
    actors   how many these are
    sum      of their ids, of each the last nine digits
    vers     the sum of their vers, of each the last nine digits

  Safe to repeat: it only reads, and nothing lives longer for it. ]]
local recent, count = KEYS[3], tonumber(ARGV[2])
local m = redis.call('HMGET', KEYS[1], 's', 'base', 'delta', 'waiting', 'complete', 'bloom', 'floor', 'run_id', 'blocked')
if m[8] and m[8] ~= ARGV[1] or not (m[1] or m[2] or m[4]) then return false end

local newest = redis.call('ZRANGE', recent, 0, count - 1, 'REV', 'WITHSCORES')
-- Above the floor recent has all saved actors, unless it has more than are looked at.
local floor = tonumber(m[7] or -1)
if #newest == 2 * count and redis.call('ZCARD', recent) > count then
  floor = math.max(floor, tonumber(newest[#newest]))
end

local actors, sum, vers = 0, 0, 0
local number, last, fmod = tonumber, string.sub, math.fmod -- a global is looked up each time
for i = 1, #newest, 2 do
  local ver = number(newest[i + 1])
  if ver <= floor then break end
  actors = actors + 1
  sum = sum + (number(last(newest[i], -9)) or 0)
  vers = vers + fmod(ver, 1000000000)
end
return {m[1] or '', m[2] or '', m[3] or '', m[4] or '', redis.call('HLEN', KEYS[2]), m[5] or '', m[6] or '',
  string.format('%.0f', floor or -1), m[9] or '', actors, sum, vers}

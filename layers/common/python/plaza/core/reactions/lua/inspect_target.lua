--[[ inspect_target: read the state of a target and a fingerprint of its newest actors.

  KEYS[1]  {<shard>}:<kind>:<target>:meta    hash: term, mode, base, accepted, db_version, floor, blocked, ...
  KEYS[2]  {<shard>}:<kind>:<target>:outbox  hash: actor -> want:version:base:nonce
  KEYS[3]  {<shard>}:<kind>:<target>:recent  zset: actor -> version, the newest saved actors
  ARGV[1]  term of this node
  ARGV[2]  maximum of actors in the fingerprint

  Bounded by: ARGV[2] actors.

  Returns {db_version, base, delta, outbox_count, entries, complete, bloom, floor, blocked, actors, sum, versions}, or
          false when the target is not loaded
    db_version, base, delta, outbox_count, complete, bloom  of meta, strings; '' for what is missing or malformed
    entries  number of entries in the outbox
    floor    the fingerprint includes all actors with a higher version; -1: no floor
    blocked  time since which a commit is missing, microseconds; '' when none is
    actors   number of actors in the fingerprint
    sum      sum of their ids, the last nine digits of each
    versions sum of their versions, the last nine digits of each

  Safe to repeat: it only reads, and does not renew the TTL. ]]
--!include meta
local recent, count = KEYS[3], tonumber(ARGV[2])
local m = redis.call('HMGET', KEYS[1], 'term', 'mode', 'base', 'accepted', 'db_version', 'floor', 'blocked')
if m[1] and m[1] ~= ARGV[1] or not (m[3] or m[4] or m[5]) then return false end
local filter = string.match(m[2] or '', ':(%w+)$') or ''
local delta, outbox_count = string.match(m[4] or '', ACCEPTED_PATTERN)

local newest = redis.call('ZRANGE', recent, 0, count - 1, 'REV', 'WITHSCORES')
-- Above the floor recent has all saved actors. When it has more than ARGV[2], the floor is the version of the last one.
local floor = tonumber(m[6] or -1)
if #newest == 2 * count and redis.call('ZCARD', recent) > count then
  floor = math.max(floor, tonumber(newest[#newest]))
end

local actors, sum, versions = 0, 0, 0
local number, last, fmod = tonumber, string.sub, math.fmod -- locals are faster than globals
for i = 1, #newest, 2 do
  local version = number(newest[i + 1])
  if version <= floor then break end
  actors = actors + 1
  sum = sum + (number(last(newest[i], -9)) or 0)
  versions = versions + fmod(version, 1000000000)
end
return {m[5] or '', m[3] or '', delta or '', outbox_count or '', redis.call('HLEN', KEYS[2]),
  filter == 'complete' and '1' or '0', filter == 'complete' and '0' or filter,
  string.format('%d', floor or -1), m[7] or '', actors, sum, versions}

--[[ lease_hydration: take the lease that permits one caller to load a target.

  KEYS[1]  {<shard>}:<kind>:<target>:meta    hash: term, mode, ...
  KEYS[2]  {<shard>}:<kind>:<target>:outbox  hash: actor -> want:version:base:nonce
  KEYS[3]  {<shard>}:<kind>:<target>:lease   string: token of the caller that loads the target
  ARGV[1]  term of this node
  ARGV[2]  token of the caller
  ARGV[3]  TTL of the lease, milliseconds

  Returns {code, entries}
    code     TAKEN; BUSY (leased by another caller), PRESENT (loaded already)
    entries  number of entries in the outbox

  Deletes meta of an earlier run of the node or of an older layout, which has no mode: rebase removes confirmed entries,
  and its delta would not include that.

  Safe to repeat: a repeat has the token that is in the lease. ]]
local m = redis.call('HMGET', KEYS[1], 'mode', 'term')
local entries = redis.call('HLEN', KEYS[2])
if m[1] and m[2] == ARGV[1] then return {'PRESENT', entries} end
if redis.call('SET', KEYS[3], ARGV[2], 'NX', 'PX', ARGV[3]) or redis.call('GET', KEYS[3]) == ARGV[2] then
  redis.call('UNLINK', KEYS[1])
  return {'TAKEN', entries}
end
return {'BUSY', entries}

--[[ cache_earliest: keep the first page of the earliest saved actors, as it was read from MySQL.

  KEYS[1]  {<shard>}:<kind>:<target>:meta      hash: db_version, run_id, earliest, ...
  KEYS[2]  {<shard>}:<kind>:<target>:earliest  zset: actor -> version, the first page of the earliest saved actors
  ARGV[1]  run_id of this node
  ARGV[2]  db_version: version of the counter at which the page was read
  ARGV[3]  last: a later row on with at most this version comes into the page
  ARGV[4]  TTL, milliseconds
  ARGV[5...]  version, actor, version, actor, ...

  Bounded by: 101 actors, which the caller sees to.

  Returns 1 kept, 0 refused: commits that the page does not have were applied, or the target is not loaded

  Safe to repeat: commits that are applied later are looked at, and those that the page has do no harm. ]]
local m = redis.call('HMGET', KEYS[1], 'db_version', 'run_id')
if not m[1] or m[2] ~= ARGV[1] or tonumber(m[1]) > tonumber(ARGV[2]) then return 0 end
redis.call('UNLINK', KEYS[2])
redis.call('ZADD', KEYS[2], unpack(ARGV, 5))
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('HSET', KEYS[1], 'earliest', ARGV[3])
return 1

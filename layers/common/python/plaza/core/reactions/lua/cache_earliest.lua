--[[ cache_earliest: store the first page of the earliest saved actors, as read from MySQL.

  KEYS[1]  {<shard>}:<kind>:<target>:meta      hash: db_version, term, earliest, ...
  KEYS[2]  {<shard>}:<kind>:<target>:earliest  zset: actor -> version, the first page of the earliest saved actors
  ARGV[1]  term of this node
  ARGV[2]  db_version: version of the counter at which the page was read
  ARGV[3]  last: version of the page's last actor; a row that is on with at most this version changes the page
  ARGV[4]  TTL, milliseconds
  ARGV[5...]  version, actor, version, actor, ...

  Bounded by: 101 actors, ensured by the caller.

  Returns 1 stored, 0 refused: the target is not loaded or has commits newer than the page

  Safe to repeat: later commits drop the page if they change it. ]]
local m = redis.call('HMGET', KEYS[1], 'db_version', 'term')
if not m[1] or m[2] ~= ARGV[1] or tonumber(m[1]) > tonumber(ARGV[2]) then return 0 end
redis.call('UNLINK', KEYS[2])
redis.call('ZADD', KEYS[2], unpack(ARGV, 5))
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('HSET', KEYS[1], 'earliest', ARGV[3])
return 1

--[[ begin_places: begin the build of a set of places.

  KEYS[1]  {<shard>}:shops:<set>:meta         hash: built_at, build_id, build_active_at, build_requested_at
  KEYS[2]  {<shard>}:shops:<set>:places:next  zset: the set that is being built
  KEYS[3]  {<shard>}:shops:<set>:versions:next  hash: its versions
  ARGV[1]  build: a unique name
  ARGV[2]  idle time after which another build may take over, milliseconds

  Returns BEGUN, or BUSY (another build is running)

  Safe to repeat: a build that has begun continues without loss. ]]
--!include build
local now_ms = build_time_ms()
local meta = redis.call('HMGET', KEYS[1], 'build_id', 'build_active_at')
local begun = resume_build(ARGV[1], meta[1], meta[2], redis.call('EXISTS', KEYS[3]) == 1, now_ms, ARGV[2])
if begun ~= nil then return begun and 'BEGUN' or 'BUSY' end
redis.call('UNLINK', KEYS[2], KEYS[3])
redis.call('HSET', KEYS[3], '0', '0') -- makes the key exist before the first shop
begin_build(KEYS[1], ARGV[1], now_ms)
return 'BEGUN'

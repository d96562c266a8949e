--[[ begin_places: begin a build of the places of all shops, or continue it.

  KEYS[1]  {<shard>}:shops:places:build  hash: build_id, build_active_at, build_began_us
  ARGV[1]  build: a unique name
  ARGV[2]  idle time after which another build may take over, milliseconds

  Returns BEGUN, or BUSY (another build is running)

  Safe to repeat: a build that has begun continues without loss. ]]
--!include build
local now_ms = build_time_ms()
local state = redis.call('HMGET', KEYS[1], 'build_id', 'build_active_at')
local begun = resume_build(ARGV[1], state[1], state[2], true, now_ms, ARGV[2])
if begun ~= nil then return begun and 'BEGUN' or 'BUSY' end
begin_build(KEYS[1], ARGV[1], now_ms, 'build_began_us', string.format('%d', now_ms * 1000))
return 'BEGUN'

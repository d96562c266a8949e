--[[ touch_places: mark the build of places as active, or end it.

  KEYS[1]  {<shard>}:shops:places:build  hash: build_id, build_active_at, build_began_us
  ARGV[1]  build: the name that it began with
  ARGV[2]  1 to end the build, else 0

  Returns the time at which the build began, microseconds; 0 when another build took over or none is active

  Safe to repeat: after the end it returns 0. ]]
--!include build
local state = redis.call('HMGET', KEYS[1], 'build_id', 'build_began_us')
if state[1] ~= ARGV[1] then return 0 end
if ARGV[2] == '1' then
  redis.call('UNLINK', KEYS[1])
else
  touch_build(KEYS[1])
end
return tonumber(state[2])

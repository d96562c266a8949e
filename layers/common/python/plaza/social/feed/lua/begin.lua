--[[ begin: begin the build of a timeline, which accepts pushes from then on.

  KEYS[1]  {<shard>}:user:<id>:<timeline>  zset: floor, building, built (scores: redis_store.py)
  ARGV[1]  age below which a timeline is not rebuilt, microseconds
  ARGV[2]  ttl until it is built, milliseconds

  Returns the name of the build, for fill; 0 if the timeline is younger than that age

  Safe to repeat: a running build keeps its name. ]]
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local meta = redis.call('ZMSCORE', KEYS[1], 'floor', 'built', 'building')
local floor, built, building = meta[1], meta[2], meta[3]
if built and math.abs(now_us + built) < tonumber(ARGV[1]) then return 0 end -- a clock may have gone back
if floor and building then return -building end
if not floor then
  redis.call('ZADD', KEYS[1], -1, 'floor')
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
redis.call('ZADD', KEYS[1], -now_us, 'building')
return now_us

--[[ begin: from here on a timeline is pushed to, so that MySQL may be read for it.

  KEYS[1]  {<shard>}:user:<id>:<timeline>  zset: minus a time: floor, building, built
  ARGV[1]  how young it must be to be left alone, microseconds
  ARGV[2]  ttl until it is built, milliseconds

  Returns the name of the build, to be given to fill; 0 when it was built just now

  Safe to repeat: a build that is under way goes on under its name. ]]
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local meta = redis.call('ZMSCORE', KEYS[1], 'floor', 'built', 'building')
local floor, built, building = meta[1], meta[2], meta[3]
if built and now_us + built < tonumber(ARGV[1]) then return 0 end
if floor and building then return -building end
if not floor then
  redis.call('ZADD', KEYS[1], -1, 'floor')
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
redis.call('ZADD', KEYS[1], -now_us, 'building')
return now_us

--[[ begin_places: start to build a set of places.

  KEYS[1]  {<shard>}:shops:<set>:meta         hash: built_at, filling_by, filling_at, asked_at
  KEYS[2]  {<shard>}:shops:<set>:places:next  zset: the set that is being built
  KEYS[3]  {<shard>}:shops:<set>:vers:next    hash: its versions
  ARGV[1]  build: a name nobody else uses
  ARGV[2]  for how long a build that does nothing is left alone, milliseconds

  Returns BEGUN, or BUSY (another build is at it)

  Safe to repeat: a build that has begun goes on, nothing in it is lost. ]]
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local meta = redis.call('HMGET', KEYS[1], 'filling_by', 'filling_at')
if meta[1] and redis.call('EXISTS', KEYS[3]) == 1 then
  if meta[1] == ARGV[1] then return 'BEGUN' end
  if tonumber(meta[2]) > now_ms - ARGV[2] then return 'BUSY' end
end
redis.call('UNLINK', KEYS[2], KEYS[3])
redis.call('HSET', KEYS[3], '0', '0') -- so that it is there before the first shop is
redis.call('HSET', KEYS[1], 'filling_by', ARGV[1], 'filling_at', now_ms)
return 'BEGUN'

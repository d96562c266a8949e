--[[ fill: finish the build of a timeline with the entries that MySQL had after the build began.

  KEYS[1]  {<shard>}:user:<id>:<timeline>  zset: <post>:<author>, celebrity:<author>, floor, building, built (scores: redis_store.py)
  ARGV[1]  build: the name that begin returned
  ARGV[2]  cap
  ARGV[3]  floor: the time above which the entries are complete, microseconds
  ARGV[4]  ttl, milliseconds
  ARGV[5...]  score, member, score, member, ...

  Bounded by: 1,000 entries, the cap of an inbox; at most 1,250 others are removed.

  Returns 1 filled; 0 refused: the build is finished, or another one is running

  Safe to repeat: the build is finished, so the repeat is refused. ]]
--!include trim
local meta = redis.call('ZMSCORE', KEYS[1], 'floor', 'building', 'built')
local floor, building, built = meta[1], meta[2], meta[3]
if not floor or not building or -building ~= tonumber(ARGV[1]) then return 0 end
local time = redis.call('TIME')
for i = 5, #ARGV, 1000 do redis.call('ZADD', KEYS[1], unpack(ARGV, i, math.min(i + 999, #ARGV))) end
redis.call('ZADD', KEYS[1], -(time[1] * 1000000 + time[2]), 'built')
redis.call('ZREM', KEYS[1], 'building')
if not built then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
raise_floor(KEYS[1], -floor, tonumber(ARGV[3]))
trim(KEYS[1], math.max(-floor, tonumber(ARGV[3])), tonumber(ARGV[2]))
return 1

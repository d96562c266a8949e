--[[ swap_ranking: replace a ranking unless a newer one is stored.

  KEYS[1]  {<shard>}:ranking:<window>       zset: post, in 19 digits -> likes
  KEYS[2]  {<shard>}:ranking:<window>:built_at  string: build time of the ranking, microseconds
  ARGV[1]  build time of the new ranking, microseconds
  ARGV[2...]  likes, post, likes, post, ...

  Bounded by: 1,500 posts a call, ensured by the caller.

  Returns 1 replaced, 0 refused: the stored ranking is newer; a build time more than a minute ahead is of no build

  Safe to repeat: the second time changes nothing. ]]
local built_at = redis.call('GET', KEYS[2])
local latest_us = (redis.call('TIME')[1] + 60) * 1000000
if built_at and tonumber(built_at) > tonumber(ARGV[1]) and tonumber(built_at) < latest_us then return 0 end
redis.call('UNLINK', KEYS[1])
if #ARGV > 1 then redis.call('ZADD', KEYS[1], unpack(ARGV, 2)) end
redis.call('SET', KEYS[2], ARGV[1])
return 1

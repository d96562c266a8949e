--[[ swap_ranking: put a ranking in the place of the one before.

  KEYS[1]  {<shard>}:ranking:<window>       zset: post, in 19 digits -> likes
  KEYS[2]  {<shard>}:ranking:<window>:built_at  string: of when it is, microseconds
  ARGV[1]  of when the new one is, microseconds
  ARGV[2...]  likes, post, likes, post, ...

  Bounded by: 1,500 posts a call, which the caller sees to.

  Returns 1 swapped, 0 refused: the one that is there is newer

  Safe to repeat: the second time changes nothing. ]]
local built_at = redis.call('GET', KEYS[2])
if built_at and tonumber(built_at) > tonumber(ARGV[1]) then return 0 end
redis.call('UNLINK', KEYS[1])
if #ARGV > 1 then redis.call('ZADD', KEYS[1], unpack(ARGV, 2)) end
redis.call('SET', KEYS[2], ARGV[1])
return 1

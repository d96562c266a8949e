--[[ project_ranking: tell the ranking of all time how many likes posts have in MySQL.

  KEYS[1]  {<shard>}:ranking:all        zset: post, in 19 digits -> likes
  KEYS[2]  {<shard>}:ranking:all:vers   hash: post -> the newest version of its counter that was heard
  KEYS[3]  {<shard>}:ranking:all:heard  zset: post -> when, seconds
  ARGV[1]  keep: how many posts the ranking holds
  ARGV[2]  remember: how many versions are enough
  ARGV[3]  how long a version is remembered in any case, seconds
  ARGV[4...]  post, likes, version, post, likes, version, ...

  Returns how many were newer than what was heard before, or as new

  Safe to repeat: of two versions the newer stays, whichever comes last; equal versions say the same. ]]
local now = tonumber(redis.call('TIME')[1])
local taken = 0
for i = 4, #ARGV, 3 do
  local post, likes, ver = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local heard = redis.call('HGET', KEYS[2], post)
  if not heard or tonumber(heard) <= ver then
    redis.call('HSET', KEYS[2], post, ARGV[i + 2])
    redis.call('ZADD', KEYS[3], now, post)
    if likes > 0 then redis.call('ZADD', KEYS[1], likes, post) else redis.call('ZREM', KEYS[1], post) end
    taken = taken + 1
  end
end
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - ARGV[1])
-- Who is ranked keeps its version; of the others the oldest are forgotten once nobody can be late any more.
local extra = redis.call('ZCARD', KEYS[3]) - ARGV[2]
if extra > 0 then
  local oldest = redis.call('ZRANGE', KEYS[3], '-inf', now - ARGV[3], 'BYSCORE', 'LIMIT', 0, extra)
  for _, post in ipairs(oldest) do
    if redis.call('ZSCORE', KEYS[1], post) then
      redis.call('ZADD', KEYS[3], now, post)
    else
      redis.call('ZREM', KEYS[3], post)
      redis.call('HDEL', KEYS[2], post)
    end
  end
end
return taken

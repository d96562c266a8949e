--[[ project_ranking: tell the ranking of all time how many likes posts have in MySQL.

  KEYS[1]  {<shard>}:ranking:all        zset: post, in 19 digits -> likes
  KEYS[2]  {<shard>}:ranking:all:versions hash: post -> the newest version of its counter that was heard
  KEYS[3]  {<shard>}:ranking:all:updated_at  zset: post -> when, seconds
  KEYS[4]  {<shard>}:ranking:all:built_at   string: of when it is, microseconds; the ranking is whole from then on
  KEYS[5]  {<shard>}:ranking:all:part   string: the last part that came of a ranking that is being made whole
  ARGV[1]  keep: how many posts the ranking holds
  ARGV[2]  remember: how many versions are enough
  ARGV[3]  how long a version is remembered in any case, seconds
  ARGV[4]  how many versions are forgotten, at most
  ARGV[5]  '', or the part of a whole ranking before this one, '0' before the first
  ARGV[6]  the name of this part
  ARGV[7]  '', or with the last part the time as of which the ranking is whole, microseconds
  ARGV[8...]  post, likes, version, post, likes, version, ...

  Bounded by: 250 posts a call, which the caller sees to, and ARGV[4] versions.

  Returns how many were newer than what was heard before, or as new

  Safe to repeat: of two versions the newer stays, whichever comes last; equal versions say the same. ]]
local now = tonumber(redis.call('TIME')[1])
local posts, likes_of, version_of = {}, {}, {}
for i = 8, #ARGV, 3 do
  local post, version = ARGV[i], version_of[ARGV[i]]
  if not version then posts[#posts + 1] = post end
  if not version or tonumber(version) <= tonumber(ARGV[i + 2]) then
    likes_of[post], version_of[post] = ARGV[i + 1], ARGV[i + 2]
  end
end
-- Each part comes with its name, and only after the one before: a Redis that lost some of them is not whole.
if ARGV[5] == '0' or ARGV[5] ~= '' and redis.call('GET', KEYS[5]) == ARGV[5] then
  redis.call('SET', KEYS[5], ARGV[6], 'EX', 3600)
  if ARGV[7] ~= '' then redis.call('SET', KEYS[4], ARGV[7]) end
end
if #posts == 0 then return 0 end
local heard = redis.call('HMGET', KEYS[2], unpack(posts))
local versions, times, likes, none = {}, {}, {}, {}
for i, post in ipairs(posts) do
  if not heard[i] or tonumber(heard[i]) <= tonumber(version_of[post]) then
    versions[#versions + 1] = post; versions[#versions + 1] = version_of[post]
    times[#times + 1] = now; times[#times + 1] = post
    if tonumber(likes_of[post]) > 0 then
      likes[#likes + 1] = likes_of[post]; likes[#likes + 1] = post
    else
      none[#none + 1] = post
    end
  end
end
if #versions == 0 then return 0 end
redis.call('HSET', KEYS[2], unpack(versions))
redis.call('ZADD', KEYS[3], unpack(times))
if #likes > 0 then redis.call('ZADD', KEYS[1], unpack(likes)) end
if #none > 0 then redis.call('ZREM', KEYS[1], unpack(none)) end
-- A call adds as many as it has posts, so as many at most have to go.
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - ARGV[1])
-- Who is ranked keeps its version; of the others the oldest are forgotten once nobody can be late any more. What one
-- call leaves, the next ones forget: each forgets more than it can add.
local extra = math.min(redis.call('ZCARD', KEYS[3]) - ARGV[2], ARGV[4] + #posts)
if extra > 0 then
  local oldest = redis.call('ZRANGE', KEYS[3], '-inf', now - ARGV[3], 'BYSCORE', 'LIMIT', 0, extra)
  if #oldest > 0 then
    local ranked = redis.call('ZMSCORE', KEYS[1], unpack(oldest))
    local kept, forgotten = {}, {}
    for i, post in ipairs(oldest) do
      if ranked[i] then
        kept[#kept + 1] = now; kept[#kept + 1] = post
      else
        forgotten[#forgotten + 1] = post
      end
    end
    if #kept > 0 then redis.call('ZADD', KEYS[3], unpack(kept)) end
    if #forgotten > 0 then
      redis.call('ZREM', KEYS[3], unpack(forgotten))
      redis.call('HDEL', KEYS[2], unpack(forgotten))
    end
  end
end
return #versions / 2

--[[ project_ranking: store the likes that posts have in MySQL in the ranking of all time.

  KEYS[1]  {<shard>}:ranking:all        zset: post, in 19 digits -> likes
  KEYS[2]  {<shard>}:ranking:all:versions hash: post -> newest version of its counter
  KEYS[3]  {<shard>}:ranking:all:updated_at  zset: post -> time of its last update, seconds
  KEYS[4]  {<shard>}:ranking:all:built_at   string: build time, microseconds; the ranking is incomplete without it
  KEYS[5]  {<shard>}:ranking:all:part   string: name of the last part that a build of the ranking has stored
  ARGV[1]  maximum of posts in the ranking
  ARGV[2]  number of versions above which old ones are dropped
  ARGV[3]  minimum age of a dropped version, seconds
  ARGV[4]  maximum of versions that one call drops, besides one for each post
  ARGV[5]  '' outside of a build; else the name of the part before this one, '0' before the first
  ARGV[6]  name of this part
  ARGV[7]  build time with the last part, microseconds; else ''
  ARGV[8...]  post, likes, version, post, likes, version, ...

  Bounded by: 250 posts a call, ensured by the caller, and ARGV[4] versions.

  Returns the number of posts whose version was not older than the stored one

  Safe to repeat: an older version is ignored, and equal versions have equal likes. ]]
local now = tonumber(redis.call('TIME')[1])
local posts, likes_of, version_of = {}, {}, {}
for i = 8, #ARGV, 3 do
  local post, version = ARGV[i], version_of[ARGV[i]]
  if not version then posts[#posts + 1] = post end
  if not version or tonumber(version) <= tonumber(ARGV[i + 2]) then
    likes_of[post], version_of[post] = ARGV[i + 1], ARGV[i + 2]
  end
end
-- A Redis that lost a part has lost its name too, so the ranking stays incomplete.
if ARGV[5] == '0' or ARGV[5] ~= '' and redis.call('GET', KEYS[5]) == ARGV[5] then
  redis.call('SET', KEYS[5], ARGV[6], 'EX', 3600)
  if ARGV[7] ~= '' then redis.call('SET', KEYS[4], ARGV[7]) end
end
if #posts == 0 then return 0 end
local stored = redis.call('HMGET', KEYS[2], unpack(posts))
local versions, times, likes, none = {}, {}, {}, {}
for i, post in ipairs(posts) do
  if not stored[i] or tonumber(stored[i]) <= tonumber(version_of[post]) then
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
-- Removes at most as many posts as this call added.
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - ARGV[1])
-- Ranked posts keep their versions. Of the others the oldest are dropped when no update can be late any more. Each call
-- can drop more versions than it adds, so later calls drop the rest.
local extra = math.min(redis.call('ZCARD', KEYS[3]) - ARGV[2], ARGV[4] + #posts)
if extra > 0 then
  local oldest = redis.call('ZRANGE', KEYS[3], '-inf', now - ARGV[3], 'BYSCORE', 'LIMIT', 0, extra)
  if #oldest > 0 then
    local ranked = redis.call('ZMSCORE', KEYS[1], unpack(oldest))
    local kept, dropped = {}, {}
    for i, post in ipairs(oldest) do
      if ranked[i] then
        kept[#kept + 1] = now; kept[#kept + 1] = post
      else
        dropped[#dropped + 1] = post
      end
    end
    if #kept > 0 then redis.call('ZADD', KEYS[3], unpack(kept)) end
    if #dropped > 0 then
      redis.call('ZREM', KEYS[3], unpack(dropped))
      redis.call('HDEL', KEYS[2], unpack(dropped))
    end
  end
end
return #versions / 2

--[[ push: add members to those timelines of one shard that exist, and trim these to their cap.

  KEYS[1...]  {<shard>}:user:<id>:<timeline>  zset: <post>:<author>, celebrity:<author>, floor (scores: redis_store.py)
  ARGV[1]  cap
  ARGV[2]  floor: the time above which the posts are complete for their authors, microseconds; 1: all of them
  ARGV[3...]  score, member, score, member, ...

  Bounded by: 16 timelines, or one and 500 entries; each loses at most 250 entries, or 1,250 if the floor rises.

  Returns the number of timelines that exist

  Safe to repeat: a member is stored once, and the floor only rises. ]]
--!include trim
local cap, min_floor = tonumber(ARGV[1]), tonumber(ARGV[2])
local function push(key)
  local floor = redis.call('ZSCORE', key, 'floor')
  if not floor then return 0 end
  for i = 3, #ARGV, 1000 do redis.call('ZADD', key, unpack(ARGV, i, math.min(i + 999, #ARGV))) end
  raise_floor(key, -floor, min_floor)
  trim(key, math.max(-floor, min_floor), cap)
  return 1
end
local existing = 0
for i = 1, #KEYS do existing = existing + push(KEYS[i]) end
return existing

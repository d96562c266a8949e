--[[ push: add to timelines of one shard, where somebody keeps them, and cut them to their cap.

  KEYS[1...]  {<shard>}:user:<id>:<timeline>  zset: <post>:<author> -> created; star:<author> -> 0; floor -> minus the time above which it is whole
  ARGV[1]  cap
  ARGV[2]  floor: the time above which what is added is all there is of its authors, 1 for from the beginning
  ARGV[3...]  score, member, score, member, ...

  Bounded by: 16 timelines, or one and 500 entries; of each timeline 250 fall out, or 1,250 if the floor rises.

  Returns how many of the timelines somebody keeps

  Safe to repeat: a member is there once, and the floor only rises. ]]
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
local kept = 0
for i = 1, #KEYS do kept = kept + push(KEYS[i]) end
return kept

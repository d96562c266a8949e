--[[ push: add to a timeline, if somebody keeps one there, and cut it to its cap.

  KEYS[1]  {<shard>}:user:<id>:<timeline>  zset: <post>:<author> -> created; star:<author> -> 0; floor -> minus the time above which it is whole
  ARGV[1]  cap
  ARGV[2]  floor: the time above which what is added is all there is of its authors, 1 for from the beginning
  ARGV[3...]  score, member, score, member, ...

  Returns 1 pushed, 0 nobody keeps this timeline

  Safe to repeat: a member is there once, and the floor only rises. ]]
--!include trim
local floor = redis.call('ZSCORE', KEYS[1], 'floor')
if not floor then return 0 end
for i = 3, #ARGV, 2 do redis.call('ZADD', KEYS[1], ARGV[i], ARGV[i + 1]) end
raise_floor(KEYS[1], -floor, tonumber(ARGV[2]))
trim(KEYS[1], math.max(-floor, tonumber(ARGV[2])), tonumber(ARGV[1]))
return 1

--[[ drop: let go of a value that is older than a version, and leave the version as a fence.

  KEYS[1]  {<shard>}:<type>:<id>:<what>  hash: ver, value; without value it is a fence: only the version was heard
  ARGV[1]  ver: the version that MySQL has by now
  ARGV[2]  ttl of the fence, seconds

  Returns 1 what is there now is a fence of this version, 0 what is there is as new or newer

  Safe to repeat: a value of the version itself stays, and so does whatever is newer. ]]
local held = redis.call('HMGET', KEYS[1], 'ver', 'value')
local ver = tonumber(ARGV[1])
if held[1] and (tonumber(held[1]) > ver or held[2] and tonumber(held[1]) == ver) then return 0 end
redis.call('HDEL', KEYS[1], 'value')
redis.call('HSET', KEYS[1], 'ver', ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1

--[[ drop: let go of a value that is older than a version, and leave the version as a fence.

  KEYS[1]  {<shard>}:<type>:<id>:<what>  hash: version, value; without value it is a fence: only the version was heard
  ARGV[1]  version: the version that MySQL has by now
  ARGV[2]  ttl of the fence, seconds

  Returns 1 what is there now is a fence of this version, 0 what is there is as new or newer

  Safe to repeat: a value of the version itself stays, and so does whatever is newer. ]]
local stored = redis.call('HMGET', KEYS[1], 'version', 'value')
local version = tonumber(ARGV[1])
if stored[1] and (tonumber(stored[1]) > version or stored[2] and tonumber(stored[1]) == version) then return 0 end
redis.call('HDEL', KEYS[1], 'value')
redis.call('HSET', KEYS[1], 'version', ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1

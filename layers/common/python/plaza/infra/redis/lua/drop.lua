--[[ drop: delete a value that is older than a version, and store the version as a fence.

  KEYS[1]  {<shard>}:<type>:<id>:<what>  hash: version, value; a fence has no value
  ARGV[1]  version: the version in MySQL
  ARGV[2]  TTL of the fence, seconds

  Returns 1 if a fence of this version was stored, 0 if Redis has a value of it or something newer

  Safe to repeat: a value of this version or a newer one stays. ]]
local stored = redis.call('HMGET', KEYS[1], 'version', 'value')
local version = tonumber(ARGV[1])
if stored[1] and (tonumber(stored[1]) > version or stored[2] and tonumber(stored[1]) == version) then return 0 end
redis.call('HDEL', KEYS[1], 'value')
redis.call('HSET', KEYS[1], 'version', ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1

--[[ project: store values of MySQL, each unless Redis has a newer version.

  KEYS[1...]  {<shard>}:<type>:<id>:<what>  hash: version, value; a fence has no value
  ARGV[1]  1: store all values; 0: store a value where one exists, else a fence
  ARGV[2]  TTL of a fence, seconds
  ARGV[3...]  for each key: version of the value in MySQL; value; TTL, seconds

  Bounded by: 250 keys, a limit of the caller.

  Returns for each key 1 if the value was stored, else 0 (Redis has a newer version, or a fence was stored)

  Safe to repeat: of two versions the newer stays, in any order. ]]
local create, fence_ttl = ARGV[1] == '1', ARGV[2]
local values, stored = {unpack(ARGV, 3)}, {}
for i = 1, #KEYS do
  local key = KEYS[i]
  local version, value, ttl = values[3 * i - 2], values[3 * i - 1], values[3 * i]
  local current = redis.call('HMGET', key, 'version', 'value')
  if current[1] and tonumber(current[1]) > tonumber(version) then
    stored[i] = 0
  elseif create or current[2] then
    redis.call('HSET', key, 'version', version, 'value', value)
    redis.call('EXPIRE', key, ttl)
    stored[i] = 1
  else
    redis.call('HSET', key, 'version', version)
    redis.call('EXPIRE', key, fence_ttl)
    stored[i] = 0
  end
end
return stored

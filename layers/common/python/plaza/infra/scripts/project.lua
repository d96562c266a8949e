--[[ project: keep what MySQL has of some things, unless Redis has something newer.

  KEYS[1...]  {<shard>}:<type>:<id>:<what>  hash: version, value; without value it is a fence: only the version is known
  ARGV[1]  1: keep the values in any case; 0: only where one is, else leave a fence
  ARGV[2]  TTL of a fence, seconds
  ARGV[3...]  of each key: version, the version of the value in MySQL; value; TTL, seconds

  Bounded by: 250 keys, which the caller sees to.

  Returns for each key 1 stored, 0 not (something newer is there, or a fence was left)

  Safe to repeat: of two versions the newer stays, whichever comes last. ]]
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

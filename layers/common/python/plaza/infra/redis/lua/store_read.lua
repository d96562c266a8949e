--[[ store_read: store values of MySQL whose reads were announced, each where the fence of its announcement still is.

  KEYS[1...]  {<shard>}:<type>:<id>:<what>  hash: version, value, fence; a fence has no value
  ARGV[1...]  for each key: fence, as the announcement returned it; version of the value in MySQL; value; TTL, seconds

  Bounded by: 250 keys, a limit of the caller.

  Returns for each key 1 if the value was stored, else 0 (the fence was lost, or Redis has a newer version)

  Safe to repeat: of two versions the newer stays, in any order. ]]
local reads, stored = {unpack(ARGV, 1)}, {}
for i = 1, #KEYS do
  local key = KEYS[i]
  local fence, version, value, ttl = reads[4 * i - 3], reads[4 * i - 2], reads[4 * i - 1], reads[4 * i]
  local current = redis.call('HMGET', key, 'fence', 'version')
  stored[i] = 0
  if current[1] == fence and tonumber(current[2]) <= tonumber(version) then
    redis.call('HSET', key, 'version', version, 'value', value)
    redis.call('EXPIRE', key, ttl)
    stored[i] = 1
  end
end
return stored

--[[ evict: delete a target except its outbox; the next caller loads it from MySQL.

  KEYS[1]  {<shard>}:<kind>:<target>:meta     hash: db_version, ...
  KEYS[2]  {<shard>}:<kind>:<target>:recent   zset
  KEYS[3]  {<shard>}:<kind>:<target>:bloom    bitmap
  KEYS[4]  {<shard>}:<kind>:<target>:filling  bitmap
  KEYS[5]  {<shard>}:<kind>:<target>:ahead    hash
  KEYS[6]  {<shard>}:<kind>:<target>:fence    string: newest db_version reported while the target was not loaded
  KEYS[7]  {<shard>}:<kind>:<target>:lease    string: token of the caller that loads the target
  KEYS[8]  {<shard>}:<kind>:<target>:row_requests    hash
  KEYS[9]  {<shard>}:<kind>:<target>:loading  hash
  ARGV[1]  expected db_version of the target, '' for any
  ARGV[2]  TTL of the fence, seconds

  Returns EVICTED, or MOVED (not loaded or at another db_version: nothing was deleted)

  Safe to repeat: a caller that loads the target meanwhile loses its lease and reads a new snapshot. ]]
local db_version = redis.call('HGET', KEYS[1], 'db_version')
if ARGV[1] ~= '' and db_version ~= ARGV[1] then return 'MOVED' end
if db_version and tonumber(db_version) > tonumber(redis.call('GET', KEYS[6]) or 0) then
  redis.call('SET', KEYS[6], db_version, 'EX', ARGV[2])
end
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[7], KEYS[8], KEYS[9])
return 'EVICTED'

--[[ forget: drop what Redis holds of a target, so that the next reader hydrates it.

  KEYS[1]  {<shard>}:<kind>:<target>:meta     hash
  KEYS[2]  {<shard>}:<kind>:<target>:pending  hash: actor -> state:ver:total
  KEYS[3]  {<shard>}:<kind>:<target>:recent   zset
  KEYS[4]  {<shard>}:<kind>:<target>:older    bitmap
  KEYS[5]  {<shard>}:<kind>:<target>:filling  bitmap

  Returns 1 forgotten, 0 something is pending: marked stale, settle forgets it when it is quiet

  Safe to repeat: what isn't there is forgotten already. ]]
if redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('DEL', KEYS[1], KEYS[3], KEYS[4], KEYS[5])
  return 1
end
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'stale', 1) end
return 0

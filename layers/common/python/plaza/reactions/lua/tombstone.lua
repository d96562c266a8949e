--[[ tombstone: let the gate of a deleted target refuse.

  KEYS[1]  {<shard>}:<kind>:<target>:meta  hash: deleted, ...

  Returns 1 done, 0 the target is not loaded; who loads it looks at its marker

  Safe to repeat: gone stays gone. ]]
if redis.call('HEXISTS', KEYS[1], 'db_version') == 0 then return 0 end
redis.call('HSET', KEYS[1], 'deleted', 1)
return 1

--[[ tombstone: mark a loaded target as deleted, so that the gate refuses reactions to it.

  KEYS[1]  {<shard>}:<kind>:<target>:meta  hash: deleted, ...

  Returns 1 marked, 0 not loaded: hydrate reads the marker of existence

  Safe to repeat: deletion is final. ]]
if redis.call('HEXISTS', KEYS[1], 'db_version') == 0 then return 0 end
redis.call('HSET', KEYS[1], 'deleted', 1)
return 1

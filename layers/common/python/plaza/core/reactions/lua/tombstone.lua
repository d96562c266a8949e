--[[ tombstone: mark a loaded target as deleted, so that the gate refuses reactions to it.

  KEYS[1]  {<shard>}:<kind>:<target>:meta  hash: mode, ...

  Returns 1 marked, 0 not loaded: hydrate reads the marker of existence

  Safe to repeat: deletion is final. ]]
local mode = redis.call('HGET', KEYS[1], 'mode')
if not mode then return 0 end
redis.call('HSET', KEYS[1], 'mode', (string.gsub(mode, ':%a+:', ':deleted:', 1)))
return 1

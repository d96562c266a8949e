--[[ bury: let the gate of a deleted target refuse.

  KEYS[1]  {<shard>}:<kind>:<target>:meta  hash: gone, ...

  Returns 1 done, 0 the target isn't in Redis; who brings it back looks first if it is there

  Safe to repeat: gone stays gone. ]]
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'gone', 1)
return 1

--[[ release_lock: delete a lock if the caller still owns it.

  KEYS[1]  {<shard>}:<what>:lock  string: the owner's token
  ARGV[1]  the caller's token

  Returns 1 if it was released, 0 if it had expired

  Safe to repeat: a repeat finds no lock of this token. ]]
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('UNLINK', KEYS[1])

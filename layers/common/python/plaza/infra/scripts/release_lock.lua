--[[ release_lock: give a lock back, unless it has ended and may be another's by now.

  KEYS[1]  {<shard>}:<what>:lock  string: the token of who has it
  ARGV[1]  the caller's token

  Returns 1 it was given back, 0 it had ended

  Safe to repeat: what was given back has ended. ]]
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('UNLINK', KEYS[1])

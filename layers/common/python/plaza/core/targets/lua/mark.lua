--[[ mark: set the marker of a target unless it is deleted.

  KEYS[1]  {<shard>}:<type>:<id>:existence  string: live, missing or deleted; live:<external id> of a target of the app
  ARGV[1]  the new marker
  ARGV[2]  TTL, seconds

  Returns 1 set, 0 refused: the target is marked as deleted

  Safe to repeat: deletion is final, so nothing replaces deleted. ]]
if ARGV[1] ~= 'deleted' and redis.call('GET', KEYS[1]) == 'deleted' then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return 1

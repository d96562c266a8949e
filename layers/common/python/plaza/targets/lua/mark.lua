--[[ mark: leave the marker of a target; what is gone stays gone.

  KEYS[1]  {<shard>}:<type>:<id>:existence  string: live, missing or deleted
  ARGV[1]  what to leave: live or deleted
  ARGV[2]  ttl, seconds

  Returns 1 left, 0 not: it is gone

  Safe to repeat: nothing that was deleted comes back, so whoever says deleted knows best. ]]
if ARGV[1] ~= 'deleted' and redis.call('GET', KEYS[1]) == 'deleted' then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return 1

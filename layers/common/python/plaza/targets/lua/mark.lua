--[[ mark: leave the marker of a target; what is gone stays gone.

  KEYS[1]  {<shard>}:<type>:<id>:there  string: live, none or gone
  ARGV[1]  what to leave: live or gone
  ARGV[2]  ttl, seconds

  Returns 1 left, 0 not: it is gone

  Safe to repeat: nothing that was deleted comes back, so whoever says gone knows best. ]]
if ARGV[1] ~= 'gone' and redis.call('GET', KEYS[1]) == 'gone' then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return 1

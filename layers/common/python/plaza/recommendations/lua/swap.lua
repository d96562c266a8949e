--[[ swap: put the recommended reviews of a shop in the place of those before.

  KEYS[1]  {<shard>}:shop:<id>:recommended        list: reviews, the best first
  KEYS[2]  {<shard>}:shop:<id>:recommended:proxy  string: the version of what is there, or who asked
  ARGV[1]  version: how far the log was rolled up when they were read
  ARGV[2]  ttl of the list, milliseconds
  ARGV[3]  for how long they are fresh, milliseconds
  ARGV[4...]  the reviews

  Returns 1 swapped, 0 refused: what is there was read later

  Safe to repeat: the second time changes nothing. ]]
local held = tonumber(redis.call('GET', KEYS[2]) or '')
if held and held > tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[1])
for i = 4, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[3])
return 1

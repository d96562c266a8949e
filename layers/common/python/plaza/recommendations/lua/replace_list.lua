--[[ replace_list: replace the recommended reviews of a shop.

  KEYS[1]  {<shard>}:shop:<id>:recommended          list: reviews, the best first
  KEYS[2]  {<shard>}:shop:<id>:recommended:fresh    string: while it exists, no rebuild is needed
  KEYS[3]  {<shard>}:shop:<id>:recommended:rebuild  string: the rebuild that began last
  ARGV[1]  rebuild: its name, stored before MySQL was read
  ARGV[2]  ttl of the list, milliseconds
  ARGV[3]  time for which the list is fresh, milliseconds
  ARGV[4...]  the reviews

  Bounded by: 100 reviews, the length of a list.

  Returns 1 replaced; 0 refused: another rebuild began since, and reads MySQL later than this one

  Safe to repeat: a repeat stores the same list. ]]
if redis.call('GET', KEYS[3]) ~= ARGV[1] then return 0 end
redis.call('UNLINK', KEYS[1])
if #ARGV > 3 then redis.call('RPUSH', KEYS[1], unpack(ARGV, 4)) end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('SET', KEYS[2], 'fresh', 'PX', ARGV[3])
return 1

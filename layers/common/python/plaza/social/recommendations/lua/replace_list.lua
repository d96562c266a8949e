--[[ replace_list: replace the recommended reviews of a shop. The lists before stay for readers of their later pages.

  KEYS[1]  {<shard>}:shop:<id>:best_reviews          hash: number -> reviews, the best first; latest -> number of the latest list
  KEYS[2]  {<shard>}:shop:<id>:best_reviews:fresh    string: while it exists, no rebuild is needed
  KEYS[3]  {<shard>}:shop:<id>:best_reviews:rebuild  string: the rebuild that began last
  ARGV[1]  rebuild: its name, stored before MySQL was read
  ARGV[2]  ttl of the lists, milliseconds
  ARGV[3]  time for which the list is fresh, milliseconds
  ARGV[4]  number of lists that are kept
  ARGV[5]  the reviews, 'review,review,...'

  Bounded by: one list of 100 reviews.

  Returns 1 replaced; 0 refused: another rebuild began since, and reads MySQL later than this one

  Safe to repeat: an equal list keeps its number. ]]
if redis.call('GET', KEYS[3]) ~= ARGV[1] then return 0 end
local latest = tonumber(redis.call('HGET', KEYS[1], 'latest') or 0)
if redis.call('HGET', KEYS[1], latest) ~= ARGV[5] then
  latest = latest + 1
  redis.call('HSET', KEYS[1], 'latest', latest, latest, ARGV[5])
  redis.call('HDEL', KEYS[1], latest - ARGV[4])
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('SET', KEYS[2], 'fresh', 'PX', ARGV[3])
return 1

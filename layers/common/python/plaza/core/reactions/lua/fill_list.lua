--[[ fill_list: store the newest reactions of a user, as read from MySQL.

  KEYS[1]  {<shard>}:<kind>:user:<id>:newest  zset: target -> version; floor:<term> -> version above which it is whole
  KEYS[2]  {<shard>}:<kind>:user:<id>:lease   string: token of the caller that may fill the list
  ARGV[1]  token that the caller stored as lease before the read from MySQL
  ARGV[2]  TTL, seconds
  ARGV[3...]  version, member, version, member, ...

  Bounded by: 100 reactions of a user.

  Returns 1 filled, 0 refused: a reaction of the user was saved meanwhile, or another caller took the lease

  Safe to repeat: the first run deletes the lease. ]]
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('UNLINK', KEYS[1], KEYS[2])
redis.call('ZADD', KEYS[1], unpack(ARGV, 3))
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1

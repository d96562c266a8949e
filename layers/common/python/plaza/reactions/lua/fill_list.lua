--[[ fill_list: keep the newest reactions of a user, as they were read from MySQL.

  KEYS[1]  {<shard>}:<kind>:user:<id>:newest  zset: target -> version; floor:<run_id> -> the version above which it is whole
  KEYS[2]  {<shard>}:<kind>:user:<id>:lease   string: who may fill it
  ARGV[1]  lease: what the caller put there before reading MySQL
  ARGV[2]  ttl, seconds
  ARGV[3...]  version, member, version, member, ...

  Bounded by: 100 reactions of a user.

  Returns 1 filled, 0 refused: somebody saved a reaction meanwhile, or another reader came later

  Safe to repeat: the lease is used up. ]]
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('UNLINK', KEYS[1], KEYS[2])
redis.call('ZADD', KEYS[1], unpack(ARGV, 3))
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1

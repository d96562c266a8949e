--[[ store_session: cache a session that was read from MySQL, unless it has ended since.

  KEYS[1]  auth{<shard>}:session:<hash>  string: <user id>:<role>:<expires>:<ends>:<checked> <signature>
  ARGV[1]  the session
  ARGV[2]  ttl, seconds
  ARGV[3]  value that marks an ended session

  Returns 1 stored, 0 not stored because it has ended

  Safe to repeat: the marker of an ended session is never overwritten. ]]
if redis.call('GET', KEYS[1]) == ARGV[3] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return 1

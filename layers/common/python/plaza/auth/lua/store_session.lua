--[[ store_session: what MySQL said of a session, unless it has ended since.

  KEYS[1]  {<shard>}:session:<hash>  string: <user id>:<role>:<expires>:<ends>:<checked>
  ARGV[1]  the session
  ARGV[2]  ttl, seconds
  ARGV[3]  what is there when it has ended

  Returns 1 kept, 0 not: it has ended

  Safe to repeat: it says what is there afterwards, and an end stays an end. ]]
if redis.call('GET', KEYS[1]) == ARGV[3] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return 1

--[[ five_calls: a like in the classic design: a marker for each actor and a counter, both with a ttl.

  KEYS[1]  string: the marker of one actor on one target
  KEYS[2]  string: the counter of the target
  ARGV[1]  ttl of both, seconds

  Returns the total. It has no list, outbox or version, so a lost counter cannot be rebuilt. ]]
if redis.call('SETNX', KEYS[1], 1) == 1 then
  redis.call('EXPIRE', KEYS[1], ARGV[1])
  redis.call('INCR', KEYS[2])
  redis.call('EXPIRE', KEYS[2], ARGV[1])
end
return redis.call('GET', KEYS[2])

--[[ read_list: the recommended reviews of a shop, and whether the caller is the one to have them made again.

  KEYS[1]  {<shard>}:shop:<id>:recommended        list: reviews, the best first
  KEYS[2]  {<shard>}:shop:<id>:recommended:fresh  string: while it is there, nobody else needs to ask
  ARGV[1]  for how long nobody else asks, milliseconds
  ARGV[2]  a name for this look, which no other has

  Bounded by: 100 reviews, the length of a list.

  Returns {must_request, review, review, ...}
    must_request  1 the caller is to ask for a rebuild, 0 it was asked for, or is fresh

  Safe to repeat: who was to ask still is. ]]
local token = 'requested:' .. ARGV[2]
local must_request = redis.call('SET', KEYS[2], token, 'NX', 'PX', ARGV[1]) or redis.call('GET', KEYS[2]) == token
return {must_request and 1 or 0, unpack(redis.call('LRANGE', KEYS[1], 0, -1))}

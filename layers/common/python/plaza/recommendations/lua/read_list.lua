--[[ read_list: return the recommended reviews of a shop, and whether the caller must request a rebuild.

  KEYS[1]  {<shard>}:shop:<id>:recommended        list: reviews, the best first
  KEYS[2]  {<shard>}:shop:<id>:recommended:fresh  string: while it exists, the list is fresh or its rebuild is requested
  ARGV[1]  minimum time between two requests, milliseconds
  ARGV[2]  unique name of this read

  Bounded by: 100 reviews, the length of a list.

  Returns {must_request, review, review, ...}
    must_request  1 the caller must request a rebuild; 0 the list is fresh, or its rebuild is requested

  Safe to repeat: a repeat with the same ARGV[2] returns the same must_request. ]]
local token = 'requested:' .. ARGV[2]
local must_request = redis.call('SET', KEYS[2], token, 'NX', 'PX', ARGV[1]) or redis.call('GET', KEYS[2]) == token
return {must_request and 1 or 0, unpack(redis.call('LRANGE', KEYS[1], 0, -1))}

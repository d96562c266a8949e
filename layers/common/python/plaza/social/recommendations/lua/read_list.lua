--[[ read_list: return the recommended reviews of a shop, and whether the caller must request a rebuild.

  KEYS[1]  {<shard>}:shop:<id>:best_reviews        hash: number -> reviews, the best first; latest -> number of the latest list
  KEYS[2]  {<shard>}:shop:<id>:best_reviews:fresh  string: while it exists, the list is fresh or its rebuild is requested
  ARGV[1]  minimum time between two requests, milliseconds
  ARGV[2]  unique name of this read
  ARGV[3]  number of the list of the page before; another list is returned if it is no longer stored

  Bounded by: one list of 100 reviews.

  Returns {must_request, number, reviews}
    must_request  1 the caller must request a rebuild; 0 the list is fresh, or its rebuild is requested
    number        of the returned list, '0' without one
    reviews       'review,review,...'

  Safe to repeat: a repeat with the same ARGV[2] returns the same must_request. ]]
local token = 'requested:' .. ARGV[2]
local must_request = redis.call('SET', KEYS[2], token, 'NX', 'PX', ARGV[1]) or redis.call('GET', KEYS[2]) == token
local number, reviews = ARGV[3], redis.call('HGET', KEYS[1], ARGV[3])
if not reviews then
  number = redis.call('HGET', KEYS[1], 'latest') or '0'
  reviews = redis.call('HGET', KEYS[1], number) or ''
end
return {must_request and 1 or 0, number, reviews}

-- trim: raise the floor of a timeline, which never falls, and remove the posts below it.
local function raise_floor(key, current_floor, floor)
  if floor <= current_floor then return end
  redis.call('ZREMRANGEBYSCORE', key, '(0', floor)
  redis.call('ZADD', key, -floor, 'floor')
end
-- A timeline may exceed the cap by a quarter, so that not every push has to trim.
local function trim(key, current_floor, cap)
  if redis.call('ZCARD', key) <= cap + cap / 4 then return end
  if redis.call('ZCOUNT', key, '(0', '+inf') <= cap then return end
  local newest_removed = redis.call('ZRANGE', key, cap, cap, 'REV', 'WITHSCORES')
  raise_floor(key, current_floor, tonumber(newest_removed[2]))
end

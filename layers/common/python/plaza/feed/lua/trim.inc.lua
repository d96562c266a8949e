-- trim: the floor of a timeline, which only rises, and what falls out below it.
local function raise_floor(key, current_floor, floor)
  if floor <= current_floor then return end
  redis.call('ZREMRANGEBYSCORE', key, '(0', floor)
  redis.call('ZADD', key, -floor, 'floor')
end
-- The cap may be passed by a quarter, so that not every push has to cut.
local function trim(key, current_floor, cap)
  if redis.call('ZCARD', key) <= cap + cap / 4 then return end
  if redis.call('ZCOUNT', key, '(0', '+inf') <= cap then return end
  local first_out = redis.call('ZRANGE', key, cap, cap, 'REV', 'WITHSCORES')
  raise_floor(key, current_floor, tonumber(first_out[2]))
end

--[[ bare_stock: sell one unit with only a counter and a set of buyers. ]]
-- It has no window and no orders, and cannot return a unit.
if tonumber(redis.call('GET', KEYS[1])) <= 0 then return 1 end
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then return 2 end
redis.call('INCRBY', KEYS[1], -1)
redis.call('SADD', KEYS[2], ARGV[1])
return 0

--[[ bare_stock: sell one unit, as commonly written: a counter, a set of buyers, and nothing else. ]]
-- No window, no order, nothing that could bring a unit back.
if tonumber(redis.call('GET', KEYS[1])) <= 0 then return 1 end
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then return 2 end
redis.call('INCRBY', KEYS[1], -1)
redis.call('SADD', KEYS[2], ARGV[1])
return 0

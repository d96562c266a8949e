--[[ fail: MySQL has this order as a failure: its unit goes back and its buyer is free.

  KEYS[1]  {<shard>}:voucher:<id>:state                    hash: epoch, stock, pending, ...
  KEYS[2]  {<shard>}:voucher:<id>:<epoch>:buyers:<bucket>  hash: buyer -> status:order
  KEYS[3]  {<shard>}:voucher:<id>:<epoch>:recovery         zset: order:buyer -> when to look at it again; all that are pending
  ARGV[1]  epoch
  ARGV[2]  order
  ARGV[3]  buyer

  Returns 1 the unit is back, 0 it was not pending (any more); -1 it is not in Redis; -2 another life has begun

  Safe to repeat: an order is pending once, and only then its unit goes back. ]]
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if not epoch then return -1 end
if epoch ~= ARGV[1] then return -2 end
if redis.call('HGET', KEYS[2], ARGV[3]) == 'pending:' .. ARGV[2] then redis.call('HDEL', KEYS[2], ARGV[3]) end
if redis.call('ZREM', KEYS[3], ARGV[2] .. ':' .. ARGV[3]) == 0 then return 0 end
redis.call('HINCRBY', KEYS[1], 'pending', -1)
redis.call('HINCRBY', KEYS[1], 'stock', 1)
return 1

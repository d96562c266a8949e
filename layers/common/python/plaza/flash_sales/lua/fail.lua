--[[ fail: return the unit of an order that failed in MySQL, and let its buyer order again.

  KEYS[1]  {<shard>}:voucher:<id>:state                         hash: generation, stock, pending, ...
  KEYS[2]  {<shard>}:voucher:<id>:<generation>:buyers:<bucket>  hash: buyer -> status:order
  KEYS[3]  {<shard>}:voucher:<id>:<generation>:recovery         zset: order:buyer, pending -> when reserved or recovered
  ARGV[1]  generation
  ARGV[2]  order
  ARGV[3]  buyer

  Returns {code, count}
    code   RELEASED, the unit was returned; NOT_PENDING; COLD, the state is not in Redis;
           STALE_GENERATION, another generation has begun
    count  of RELEASED: 1

  Safe to repeat: the unit is returned only while the order is pending. ]]
local generation = redis.call('HGET', KEYS[1], 'generation')
if not generation then return {'COLD'} end
if generation ~= ARGV[1] then return {'STALE_GENERATION'} end
if redis.call('HGET', KEYS[2], ARGV[3]) == 'pending:' .. ARGV[2] then redis.call('HDEL', KEYS[2], ARGV[3]) end
if redis.call('ZREM', KEYS[3], ARGV[2] .. ':' .. ARGV[3]) == 0 then return {'NOT_PENDING'} end
redis.call('HINCRBY', KEYS[1], 'pending', -1)
redis.call('HINCRBY', KEYS[1], 'stock', 1)
return {'RELEASED', 1}

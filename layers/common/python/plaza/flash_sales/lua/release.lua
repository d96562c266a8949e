--[[ release: return the unit of an order that failed or was cancelled, and let its buyer order again.

  KEYS[1]  {<shard>}:voucher:<id>:state                         hash: generation, stock, pending, sold, cancelled, ...
  KEYS[2]  {<shard>}:voucher:<id>:<generation>:buyers:<bucket>  hash: buyer -> status:order
  KEYS[3]  {<shard>}:voucher:<id>:<generation>:recovery         zset: order:buyer, pending -> when reserved or recovered
  KEYS[4]  {<shard>}:voucher:<id>:<generation>:cancelled        set: order:buyer, which confirm refuses
  ARGV[1]  generation
  ARGV[2]  order
  ARGV[3]  buyer
  ARGV[4]  1: it was cancelled, perhaps after its success; 0: it failed

  Returns {code, count}
    code   RELEASED, its unit was returned; UNCHANGED; COLD, the state is not in Redis; STALE_GENERATION,
           another generation has begun; FINALIZED, the sale is over and its keys expire
    count  of RELEASED: 1

  Safe to repeat: a unit is returned only while the order is pending or, if it was cancelled, a success. ]]
local fields = redis.call('HMGET', KEYS[1], 'generation', 'phase')
if not fields[1] then return {'COLD'} end
if fields[1] ~= ARGV[1] then return {'STALE_GENERATION'} end
if fields[2] == 'finalized' then return {'FINALIZED'} end
local order, buyer, cancelled = ARGV[2], ARGV[3], ARGV[4] == '1'
if cancelled then
  redis.call('HINCRBY', KEYS[1], 'cancelled', redis.call('SADD', KEYS[4], order .. ':' .. buyer))
end
local entry = redis.call('HGET', KEYS[2], buyer)
local was_success = cancelled and entry == 'success:' .. order
if was_success or entry == 'pending:' .. order then redis.call('HDEL', KEYS[2], buyer) end
local counted = was_success and 'sold' or 'pending'
if not was_success and redis.call('ZREM', KEYS[3], order .. ':' .. buyer) == 0 then return {'UNCHANGED'} end
redis.call('HINCRBY', KEYS[1], counted, -1)
redis.call('HINCRBY', KEYS[1], 'stock', 1)
return {'RELEASED', 1}

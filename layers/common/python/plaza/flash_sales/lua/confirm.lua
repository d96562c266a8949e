--[[ confirm: MySQL has these orders as successes; their buyers are all of one bucket.

  KEYS[1]  {<shard>}:voucher:<id>:state                    hash: epoch, stock, pending, sold, ...
  KEYS[2]  {<shard>}:voucher:<id>:<epoch>:buyers:<bucket>  hash: buyer -> status:order
  KEYS[3]  {<shard>}:voucher:<id>:<epoch>:recovery         zset: order:buyer -> when to look at it again; all that are pending
  ARGV[1]  epoch
  ARGV[2...]  order, buyer, order, buyer, ...

  Bounded by: 250 orders.

  Returns how many this life had not made and now has: their units come out of stock, which may go
          below 0 until MySQL has refused as many; -1 it is not in Redis; -2 another life has begun

  Safe to repeat: a success is counted when the buyer gets it, and they have it the second time. ]]
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if not epoch then return -1 end
if epoch ~= ARGV[1] then return -2 end
local sold, from_pending = 0, 0
for i = 2, #ARGV, 2 do
  local order, buyer = ARGV[i], ARGV[i + 1]
  local success = 'success:' .. order
  from_pending = from_pending + redis.call('ZREM', KEYS[3], order .. ':' .. buyer)
  if redis.call('HGET', KEYS[2], buyer) ~= success then
    redis.call('HSET', KEYS[2], buyer, success)
    sold = sold + 1
  end
end
if sold > 0 or from_pending > 0 then
  redis.call('HINCRBY', KEYS[1], 'sold', sold)
  redis.call('HINCRBY', KEYS[1], 'pending', 0 - from_pending) -- not -0, which is no number to it
  redis.call('HINCRBY', KEYS[1], 'stock', from_pending - sold)
end
return sold - from_pending

--[[ confirm: record successes that MySQL has stored, for buyers of one bucket.

  KEYS[1]  {<shard>}:voucher:<id>:state                         hash: generation, stock, pending, sold, cancelled, ...
  KEYS[2]  {<shard>}:voucher:<id>:<generation>:buyers:<bucket>  hash: buyer -> status:order
  KEYS[3]  {<shard>}:voucher:<id>:<generation>:recovery         zset: order:buyer, pending -> when reserved or recovered
  KEYS[4]  {<shard>}:voucher:<id>:<generation>:cancelled        set: order:buyer
  ARGV[1]  generation
  ARGV[2...]  order, buyer, order, buyer, ...

  Bounded by: 250 orders.

  Returns {code, count}
    code   CONFIRMED; COLD, the state is not in Redis; STALE_GENERATION, another generation has begun
    count  of CONFIRMED: successes that were not pending in this generation. Their units are taken from
           stock, which may fall below 0 until MySQL has refused as many pending orders

  Safe to repeat: a success is counted only when the buyer's entry changes. ]]
local fields = redis.call('HMGET', KEYS[1], 'generation', 'cancelled')
if not fields[1] then return {'COLD'} end
if fields[1] ~= ARGV[1] then return {'STALE_GENERATION'} end
local any_cancelled = tonumber(fields[2] or 0) > 0
local sold, from_pending = 0, 0
for i = 2, #ARGV, 2 do
  local order, buyer = ARGV[i], ARGV[i + 1]
  local success, member = 'success:' .. order, order .. ':' .. buyer
  -- An order that was cancelled after its row was read stays cancelled.
  if not (any_cancelled and redis.call('SISMEMBER', KEYS[4], member) == 1) then
    from_pending = from_pending + redis.call('ZREM', KEYS[3], member)
    local entry = redis.call('HGET', KEYS[2], buyer)
    if entry ~= success then
      redis.call('HSET', KEYS[2], buyer, success)
      -- A buyer has one success: another one was cancelled, and its release is still to come.
      if not entry or string.sub(entry, 1, 8) ~= 'success:' then sold = sold + 1 end
    end
  end
end
if sold > 0 or from_pending > 0 then
  redis.call('HINCRBY', KEYS[1], 'sold', sold)
  redis.call('HINCRBY', KEYS[1], 'pending', 0 - from_pending) -- -from_pending could be -0, which HINCRBY rejects
  redis.call('HINCRBY', KEYS[1], 'stock', from_pending - sold)
end
return {'CONFIRMED', sold - from_pending}

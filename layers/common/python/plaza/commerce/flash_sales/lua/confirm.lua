--[[ confirm: record successes that MySQL has stored, for buyers of one bucket.

  KEYS[1]  {<shard>}:voucher:<id>:sale                          hash: generation, counts, sold, cancelled, ...
  KEYS[2]  {<shard>}:voucher:<id>:<generation>:buyers:<bucket>  hash: buyer -> status:order
  KEYS[3]  {<shard>}:voucher:<id>:<generation>:recovery         list: order:buyer:second, when reserved or recovered
  KEYS[4]  {<shard>}:voucher:<id>:<generation>:cancelled        set: order:buyer
  KEYS[5]  {<shard>}:voucher:<id>:<generation>:waitlist         zset: buyer -> seq, the order of offers
  KEYS[6]  {<shard>}:voucher:<id>:<generation>:offers           zset: buyer -> when the offer ends, microseconds since 1970
  ARGV[1]  generation
  ARGV[2...]  order, buyer, order, buyer, ...

  Bounded by: 250 orders.

  Returns {code, count}
    code   CONFIRMED; COLD, the state is not in Redis; STALE_GENERATION, another generation has begun
    count  of CONFIRMED: successes of buyers without a pending order in this generation. Their units are
           taken from stock, which may fall below 0 until MySQL has refused as many pending orders

  A success replaces another pending order of its buyer and takes that unit: MySQL refuses the other order while
  the success holds.

  Safe to repeat: a success is counted only when the buyer's entry changes. ]]
--!include counts
local fields = redis.call('HMGET', KEYS[1], 'generation', 'cancelled', 'counts')
if not fields[1] then return {'COLD'} end
if fields[1] ~= ARGV[1] then return {'STALE_GENERATION'} end
local any_cancelled = tonumber(fields[2]) > 0
local _, pending, offered, waiting = parse_counts(fields[3])
local any_waiting = offered + waiting > 0
local sold, from_pending, left, accepted = 0, 0, 0, 0
for i = 2, #ARGV, 2 do
  local order, buyer = ARGV[i], ARGV[i + 1]
  local success = 'success:' .. order
  -- An order that was cancelled after its row was read stays cancelled.
  if not (any_cancelled and redis.call('SISMEMBER', KEYS[4], order .. ':' .. buyer) == 1) then
    local entry = redis.call('HGET', KEYS[2], buyer)
    if entry ~= success then
      redis.call('HSET', KEYS[2], buyer, success)
      -- A buyer has one success: another one was cancelled, and its release is still to come.
      if not entry or string.sub(entry, 1, 8) ~= 'success:' then sold = sold + 1 end
      if entry and string.sub(entry, 1, 8) == 'pending:' then from_pending = from_pending + 1 end
      if any_waiting then -- of an older generation, or after a failover: its buyer waits no more
        left = left + redis.call('ZREM', KEYS[5], buyer)
        accepted = accepted + redis.call('ZREM', KEYS[6], buyer)
      end
    end
  end
end
if sold > 0 then redis.call('HINCRBY', KEYS[1], 'sold', sold) end
if sold > 0 or left > 0 or accepted > 0 then
  add_to_counts(KEYS[1], from_pending - sold + accepted, 0 - from_pending, 0 - accepted, 0 - left)
end
if from_pending > 0 and from_pending == pending then redis.call('UNLINK', KEYS[3]) end -- none is pending
return {'CONFIRMED', sold - from_pending}

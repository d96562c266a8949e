--[[ reserve: take one unit for one buyer, as a pending order.

  KEYS[1]  {<shard>}:voucher:<id>:state                         hash: generation, phase, stock, pending, full_us, ...
  KEYS[2]  {<shard>}:voucher:<id>:<generation>:buyers:<bucket>  hash: buyer -> status:order
  KEYS[3]  {<shard>}:voucher:<id>:<generation>:recovery         zset: order:buyer, pending -> when reserved or recovered
  KEYS[4]  {<shard>}:voucher:<id>:<generation>:offers           zset: buyer -> when the offer ends, microseconds since 1970
  ARGV[1]  generation
  ARGV[2]  id of the new order
  ARGV[3]  buyer
  ARGV[4]  rate, orders per second
  ARGV[5]  burst, orders
  ARGV[6]  limit of pending orders

  Returns {code, detail}
    code    RESERVED, detail is offer for the unit of an offer; EXISTS, detail is status:order of the buyer's order;
            SOLD_OUT; CLOSED; WITHDRAWN, the voucher is; NOT_OPEN_YET and RATE_LIMITED, detail is the wait in
            microseconds; or the state is unusable: COLD, not in Redis; STALE_GENERATION, another generation
            has begun; LOADING, not yet complete; DRAINING, complete, but the queue may have older orders

  EXISTS with the id that was passed: the reply of an earlier RESERVED was lost.

  Safe to repeat: the second call returns the id of the buyer's order. ]]
--!include bucket
local state, buyers, recovery, offers, buyer = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[3]
local fields = redis.call('HMGET', state, 'generation', 'phase', 'stock', 'pending', 'full_us', 'opens_us',
  'closes_us', 'offered', 'waiting')
if not fields[1] then return {'COLD'} end
if fields[1] ~= ARGV[1] then return {'STALE_GENERATION'} end
local now = redis.call('TIME')
local now_us = now[1] * 1000000 + now[2]
local stock, pending = tonumber(fields[3]), tonumber(fields[4])
local offered, waiting = tonumber(fields[8] or 0), tonumber(fields[9] or 0)
local until_us = offered > 0 and redis.call('ZSCORE', offers, buyer)
local has_offer = until_us and tonumber(until_us) > now_us
local full_us, early_us = take_token(tonumber(fields[5]), now_us, ARGV[4], ARGV[5])

-- The refusal for a buyer without an order; nil if the buyer may get one.
local function find_refusal()
  if fields[2] == 'withdrawn' then return {'WITHDRAWN'} end
  if fields[2] == 'loading' then return {'LOADING'} end
  if fields[2] == 'draining' then return {'DRAINING'} end
  if now_us < tonumber(fields[6]) then return {'NOT_OPEN_YET', fields[6] - now_us} end
  if now_us >= tonumber(fields[7]) then return {'CLOSED'} end
  -- What returns belongs to the waitlist.
  if not has_offer and (stock <= 0 or waiting > 0) then return {'SOLD_OUT'} end
  if early_us > 0 then return {'RATE_LIMITED', early_us} end
  if pending >= tonumber(ARGV[6]) then return {'RATE_LIMITED', math.ceil(pending * 1000000 / ARGV[4])} end
end

local refusal = find_refusal()
-- HSETNX both writes the order and tests whether the buyer has one.
if refusal or redis.call('HSETNX', buyers, buyer, 'pending:' .. ARGV[2]) == 0 then
  local entry = redis.call('HGET', buyers, buyer)
  if entry then return {'EXISTS', entry} end
  return refusal
end
redis.call('ZADD', recovery, now_us, ARGV[2] .. ':' .. buyer)
if has_offer then
  redis.call('ZREM', offers, buyer)
  redis.call('HSET', state, 'offered', offered - 1, 'pending', pending + 1, 'full_us', full_us)
  return {'RESERVED', 'offer'}
end
redis.call('HSET', state, 'stock', stock - 1, 'pending', pending + 1, 'full_us', full_us)
return {'RESERVED'}

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
local phase, stock, pending, offered, waiting = fields[2], tonumber(fields[3]), tonumber(fields[4]), fields[8], fields[9]
local opens_us, closes_us = tonumber(fields[6]), tonumber(fields[7])
local full_us, early_us = take_token(tonumber(fields[5]), now_us, ARGV[4], ARGV[5])

local is_open = phase == 'live' and now_us >= opens_us and now_us < closes_us
local is_free = stock > 0 and waiting == '0' and offered == '0'
local is_within_limits = early_us <= 0 and pending < tonumber(ARGV[6])
local has_offer, code, wait_us = false, nil, nil -- code: why a buyer without an order gets none
if not (is_open and is_free and is_within_limits) then
  local until_us = offered ~= '0' and redis.call('ZSCORE', offers, buyer)
  has_offer = until_us and tonumber(until_us) > now_us
  if phase == 'withdrawn' then code = 'WITHDRAWN'
  elseif phase == 'loading' then code = 'LOADING'
  elseif phase == 'draining' then code = 'DRAINING'
  elseif now_us < opens_us then
    code = 'NOT_OPEN_YET'
    wait_us = opens_us - now_us
  elseif now_us >= closes_us then code = 'CLOSED'
  -- What returns belongs to the waitlist.
  elseif not has_offer and (stock <= 0 or waiting ~= '0') then code = 'SOLD_OUT'
  elseif early_us > 0 then
    code = 'RATE_LIMITED'
    wait_us = early_us
  elseif pending >= tonumber(ARGV[6]) then
    code = 'RATE_LIMITED'
    wait_us = math.ceil(pending * 1000000 / ARGV[4])
  end
end

-- HSETNX both writes the order and tests whether the buyer has one.
if code or redis.call('HSETNX', buyers, buyer, 'pending:' .. ARGV[2]) == 0 then
  local entry = redis.call('HGET', buyers, buyer)
  if entry then return {'EXISTS', entry} end
  return {code, wait_us}
end
-- Formatted as %d: Redis takes twice the time for a number as an argument.
local int = string.format
redis.call('ZADD', recovery, int('%d', now_us), ARGV[2] .. ':' .. buyer)
if has_offer then
  redis.call('ZREM', offers, buyer)
  redis.call('HSET', state, 'offered', offered - 1, 'pending', pending + 1, 'full_us', int('%d', full_us))
  return {'RESERVED', 'offer'}
end
redis.call('HSET', state, 'stock', int('%d', stock - 1), 'pending', int('%d', pending + 1),
  'full_us', int('%d', full_us))
return {'RESERVED'}

--[[ reserve: take one unit for one buyer, as a pending order.

  KEYS[1]  {<shard>}:voucher:<id>:sale                          hash: generation, phase, counts, opens_us, closes_us, ...
  KEYS[2]  {<shard>}:voucher:<id>:<generation>:buyers:<bucket>  hash: buyer -> status:order
  KEYS[3]  {<shard>}:voucher:<id>:<generation>:recovery         list: order:buyer:second, when reserved or recovered
  KEYS[4]  {<shard>}:voucher:<id>:<generation>:offers           zset: buyer -> when the offer ends, microseconds since 1970
  ARGV[1]  generation
  ARGV[2]  id of the new order
  ARGV[3]  buyer
  ARGV[4]  microseconds between two orders at the allowed rate; the burst is the orders of a second
  ARGV[5]  limit of pending orders

  Returns '<code>' or '<code> <detail>'
    code    RESERVED, detail is offer for the unit of an offer; EXISTS, detail is status:order of the buyer's order;
            SOLD_OUT; CLOSED; WITHDRAWN, the voucher is; NOT_OPEN_YET and RATE_LIMITED, detail is the wait in
            microseconds; or the state is unusable: COLD, not in Redis; STALE_GENERATION, another generation
            has begun; LOADING, not yet complete; DRAINING, complete, but the queue may have older orders

  EXISTS with the id that was passed: the reply of an earlier RESERVED was lost.

  Safe to repeat: the second call returns the id of the buyer's order. ]]
local state, buyers, buyer = KEYS[1], KEYS[2], ARGV[3]
local fields = redis.call('HMGET', state, 'generation', 'phase', 'counts', 'opens_us', 'closes_us')
if fields[1] ~= ARGV[1] then return fields[1] and 'STALE_GENERATION' or 'COLD' end
local now = redis.call('TIME')
local now_us = now[1] * 1000000 + now[2]
local phase, opens_us, closes_us = fields[2], fields[4] + 0, fields[5] + 0
-- Written out: Lua creates each function of counts.inc.lua and bucket.inc.lua again in every run.
local stock, pending, offered, waiting, was_full_us = string.match(fields[3], '^(%-?%d+):(%-?%d+):(%d+):(%d+):(%d+)$')
stock, pending = stock + 0, pending + 0
local limit_us = now_us + 1000000 -- a later full_us is of a clock that went back
local full_us = math.min(math.max(now_us, was_full_us + 0), limit_us) + ARGV[4]
local early_us = full_us - limit_us

local is_open = phase == 'live' and now_us >= opens_us and now_us < closes_us
local is_free = stock > 0 and offered == '0' and waiting == '0'
local is_within_limits = early_us <= 0 and pending < ARGV[5] + 0
local has_offer, code, wait_us = false, nil, nil -- code: why a buyer without an order gets none
if not (is_open and is_free and is_within_limits) then
  local until_us = offered ~= '0' and redis.call('ZSCORE', KEYS[4], buyer)
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
    if was_full_us + 0 > limit_us then
      redis.call('HSET', state, 'counts', string.format('%d:%d:%s:%s:%d', stock, pending, offered, waiting, limit_us))
    end
  elseif pending >= tonumber(ARGV[5]) then
    code = 'RATE_LIMITED'
    wait_us = pending * ARGV[4]
  end
end

-- HSETNX both writes the order and tests whether the buyer has one.
if code or redis.call('HSETNX', buyers, buyer, 'pending:' .. ARGV[2]) == 0 then
  local entry = redis.call('HGET', buyers, buyer)
  if entry then return 'EXISTS' .. ' ' .. entry end
  return wait_us and code .. string.format(' %.0f', wait_us) or code
end
redis.call('RPUSH', KEYS[3], ARGV[2] .. ':' .. buyer .. ':' .. now[1])
if has_offer then
  redis.call('ZREM', KEYS[4], buyer)
  offered = offered - 1
else
  stock = stock - 1
end
redis.call('HSET', state, 'counts', string.format('%d:%d:%s:%s:%d', stock, pending + 1, offered, waiting, full_us))
return has_offer and 'RESERVED offer' or 'RESERVED'

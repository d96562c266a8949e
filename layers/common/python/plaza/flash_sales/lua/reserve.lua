--[[ reserve: take one unit for one buyer, as a pending order.

  KEYS[1]  {<shard>}:voucher:<id>:state                    hash: epoch, phase, stock, pending, opens_us, closes_us, tokens, tokens_us, ...
  KEYS[2]  {<shard>}:voucher:<id>:<epoch>:buyers:<bucket>  hash: buyer -> status:order
  KEYS[3]  {<shard>}:voucher:<id>:<epoch>:recovery         zset: order:buyer -> when to look at it again, microseconds; all that are pending
  ARGV[1]  epoch
  ARGV[2]  order: the id that the order has if one is made
  ARGV[3]  buyer
  ARGV[4]  rate: how many orders a second are let in
  ARGV[5]  burst: how many at once
  ARGV[6]  the most that may be pending

  Returns {code, detail}
    code    RESERVED; EXISTS, detail is status:order of the one they have; SOLD_OUT; CLOSED;
            EARLY and CROWDED, detail is how many microseconds too early;
            and when the state can't be used: COLD (not in Redis), ENDED (another life has begun),
            LOADING (not all of it is back), HELD (it is back, and the queue may hold older orders)

  Safe to repeat: the second time the buyer has an order, and gets its id. ]]
--!include bucket
local state, buyers, recovery = KEYS[1], KEYS[2], KEYS[3]
local held = redis.call('HMGET', state, 'epoch', 'phase', 'stock', 'pending', 'opens_us', 'closes_us', 'tokens', 'tokens_us')
if not held[1] then return {'COLD'} end
if held[1] ~= ARGV[1] then return {'ENDED'} end
local entry = redis.call('HGET', buyers, ARGV[3])
if entry then return {'EXISTS', entry} end
if held[2] == 'loading' then return {'LOADING'} end
if held[2] == 'held' then return {'HELD'} end

local now = redis.call('TIME')
local now_us = now[1] * 1000000 + now[2]
if now_us < tonumber(held[5]) then return {'EARLY', held[5] - now_us} end
if now_us >= tonumber(held[6]) then return {'CLOSED'} end
local stock, pending = tonumber(held[3]), tonumber(held[4])
if stock <= 0 then return {'SOLD_OUT'} end

local rate, burst = tonumber(ARGV[4]), tonumber(ARGV[5])
local tokens = refill(held[7], held[8], now_us, rate, burst)
if tokens < 1 then return {'CROWDED', until_next_us(tokens, rate)} end
if pending >= tonumber(ARGV[6]) then return {'CROWDED', math.ceil(pending / rate * 1000000)} end

local now_text = string.format('%.0f', now_us)
redis.call('HSET', state, 'stock', stock - 1, 'pending', pending + 1, 'tokens', tokens - 1, 'tokens_us', now_text)
redis.call('HSET', buyers, ARGV[3], 'pending:' .. ARGV[2])
redis.call('ZADD', recovery, now_text, ARGV[2] .. ':' .. ARGV[3])
return {'RESERVED'}

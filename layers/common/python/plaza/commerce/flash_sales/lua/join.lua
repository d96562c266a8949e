--[[ join: add buyers of one bucket to the waitlist, unless they have an order or an offer; then offer units in stock.

  KEYS[1]  {<shard>}:voucher:<id>:sale                          hash: generation, phase, counts, opens_us, closes_us, ...
  KEYS[2]  {<shard>}:voucher:<id>:<generation>:buyers:<bucket>  hash: buyer -> status:order
  KEYS[3]  {<shard>}:voucher:<id>:<generation>:waitlist         zset: buyer -> seq, the order of offers
  KEYS[4]  {<shard>}:voucher:<id>:<generation>:offers           zset: buyer -> when the offer ends, microseconds since 1970
  ARGV[1]  generation
  ARGV[2]  time to accept an offer, microseconds
  ARGV[3]  limit of the waitlist, for one buyer who asks to join and may be refused; 0: MySQL has the buyers, none is refused
  ARGV[4...]  buyer, seq, buyer, seq, ...; an empty seq only asks whether the buyer may join

  Bounded by: 250 buyers.

  Returns {code, count}
    code   JOINED; COLD, the state is not in Redis; STALE_GENERATION, another generation has begun; or why the buyer
           is refused: WITHDRAWN, the voucher is; NOT_OPEN, the sale has not begun or is over; and unless the buyer
           has an order, a position or an offer, LOADING, not yet live; UNITS_LEFT; FULL
    count  of JOINED: buyers that were added

  Safe to repeat: a buyer stays at the first seq. ]]
--!include counts
--!include term
--!include offer
local fields = redis.call('HMGET', KEYS[1], 'generation', 'phase', 'counts', 'opens_us', 'closes_us')
if not fields[1] then return {'COLD'} end
if fields[1] ~= ARGV[1] then return {'STALE_GENERATION'} end
if fields[2] == 'finalized' then return {'NOT_OPEN'} end

local function is_known(buyer)
  return redis.call('HEXISTS', KEYS[2], buyer) == 1 or redis.call('ZSCORE', KEYS[4], buyer)
end

local function find_refusal(buyer, max_waiting)
  local phase, now = fields[2], redis.call('TIME')
  local now_us = now[1] * 1000000 + now[2]
  if phase == 'withdrawn' then return 'WITHDRAWN' end
  if now_us < tonumber(fields[4]) or now_us >= tonumber(fields[5]) then return 'NOT_OPEN' end
  if is_known(buyer) or redis.call('ZSCORE', KEYS[3], buyer) then return nil end
  if phase ~= 'live' then return 'LOADING' end
  local stock, _, _, waiting = parse_counts(fields[3])
  if stock > 0 and waiting == 0 then return 'UNITS_LEFT' end
  if waiting >= max_waiting then return 'FULL' end
end

local max_waiting, added = tonumber(ARGV[3]), 0
local refusal = max_waiting > 0 and find_refusal(ARGV[4], max_waiting)
if refusal then return {refusal} end
for i = 4, #ARGV, 2 do
  local buyer, seq = ARGV[i], ARGV[i + 1]
  if seq ~= '' and not is_known(buyer) then
    added = added + redis.call('ZADD', KEYS[3], 'NX', seq, buyer)
  end
end
add_to_counts(KEYS[1], 0, 0, 0, added)
make_offers(KEYS[1], KEYS[3], KEYS[4], tonumber(ARGV[2]), 0)
return {'JOINED', added}

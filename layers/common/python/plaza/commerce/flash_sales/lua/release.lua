--[[ release: return the unit of an order that failed or was cancelled, to the waitlist or to the stock.

  KEYS[1]  {<shard>}:voucher:<id>:sale                          hash: generation, phase, counts, sold, cancelled, ...
  KEYS[2]  {<shard>}:voucher:<id>:<generation>:buyers:<bucket>  hash: buyer -> status:order
  KEYS[3]  {<shard>}:voucher:<id>:<generation>:recovery         list: order:buyer:second, when reserved or recovered
  KEYS[4]  {<shard>}:voucher:<id>:<generation>:cancelled        set: order:buyer, which confirm refuses
  KEYS[5]  {<shard>}:voucher:<id>:<generation>:waitlist         zset: buyer -> seq, the order of offers
  KEYS[6]  {<shard>}:voucher:<id>:<generation>:offers           zset: buyer -> when the offer ends, microseconds since 1970
  ARGV[1]  generation
  ARGV[2]  order
  ARGV[3]  buyer
  ARGV[4]  1: it was cancelled, perhaps after its success; 0: it failed
  ARGV[5]  time to accept an offer, microseconds

  Bounded by: 100 offers.

  Returns {code, count}
    code   RELEASED, its unit was returned; UNCHANGED; COLD, the state is not in Redis; STALE_GENERATION,
           another generation has begun; FINALIZED, the sale is over and its keys expire
    count  of RELEASED: 1

  Safe to repeat: a unit is returned only while the order is pending or, if it was cancelled, a success. ]]
--!include counts
--!include term
--!include offer
local fields = redis.call('HMGET', KEYS[1], 'generation', 'phase', 'counts')
if not fields[1] then return {'COLD'} end
if fields[1] ~= ARGV[1] then return {'STALE_GENERATION'} end
if fields[2] == 'finalized' then return {'FINALIZED'} end
local order, buyer, cancelled = ARGV[2], ARGV[3], ARGV[4] == '1'
if cancelled then
  redis.call('HINCRBY', KEYS[1], 'cancelled', redis.call('SADD', KEYS[4], order .. ':' .. buyer))
end
local entry = redis.call('HGET', KEYS[2], buyer)
local was_success = cancelled and entry == 'success:' .. order
if not was_success and entry ~= 'pending:' .. order then return {'UNCHANGED'} end
redis.call('HDEL', KEYS[2], buyer)
local _, pending = parse_counts(fields[3])
if was_success then
  redis.call('HINCRBY', KEYS[1], 'sold', -1)
elseif pending == 1 then
  redis.call('UNLINK', KEYS[3]) -- none is pending any more
end
add_to_counts(KEYS[1], 1, was_success and 0 or -1, 0, 0)
make_offers(KEYS[1], KEYS[5], KEYS[6], tonumber(ARGV[5]), 1)
return {'RELEASED', 1}

--[[ join: add buyers of one bucket to the waitlist, unless they have an order or an offer; then offer units in stock.

  KEYS[1]  {<shard>}:voucher:<id>:sale                          hash: generation, counts, ...
  KEYS[2]  {<shard>}:voucher:<id>:<generation>:buyers:<bucket>  hash: buyer -> status:order
  KEYS[3]  {<shard>}:voucher:<id>:<generation>:waitlist         zset: buyer -> seq, the order of offers
  KEYS[4]  {<shard>}:voucher:<id>:<generation>:offers           zset: buyer -> when the offer ends, microseconds since 1970
  ARGV[1]  generation
  ARGV[2]  time to accept an offer, microseconds
  ARGV[3...]  seq, buyer, seq, buyer, ...

  Bounded by: 250 buyers.

  Returns {code, count}
    code   JOINED; COLD, the state is not in Redis; STALE_GENERATION, another generation has begun
    count  of JOINED: buyers that were added

  Safe to repeat: a buyer stays at the first seq. ]]
--!include counts
--!include offer
local generation = redis.call('HGET', KEYS[1], 'generation')
if not generation then return {'COLD'} end
if generation ~= ARGV[1] then return {'STALE_GENERATION'} end
local added = 0
for i = 3, #ARGV, 2 do
  local seq, buyer = ARGV[i], ARGV[i + 1]
  if redis.call('HEXISTS', KEYS[2], buyer) == 0 and not redis.call('ZSCORE', KEYS[4], buyer) then
    added = added + redis.call('ZADD', KEYS[3], 'NX', seq, buyer)
  end
end
add_to_counts(KEYS[1], 0, 0, 0, added)
make_offers(KEYS[1], KEYS[3], KEYS[4], tonumber(ARGV[2]))
return {'JOINED', added}

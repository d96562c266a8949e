--[[ leave: remove buyers from the waitlist or end their offers; then offer units in stock to the next buyers.

  KEYS[1]  {<shard>}:voucher:<id>:sale                   hash: generation, phase, counts, ...
  KEYS[2]  {<shard>}:voucher:<id>:<generation>:waitlist  zset: buyer -> seq, the order of offers
  KEYS[3]  {<shard>}:voucher:<id>:<generation>:offers    zset: buyer -> when the offer ends, microseconds since 1970
  ARGV[1]  generation
  ARGV[2]  time to accept an offer, microseconds
  ARGV[3]  1: only offers that have ended; 0: any position
  ARGV[4...]  buyers; none: only offer units

  Bounded by: 500 buyers.

  Returns {code, offered}
    code     LEFT; COLD, the state is not in Redis; STALE_GENERATION, another generation has begun; FINALIZED
    offered  of LEFT: units that were offered

  Safe to repeat: a unit is returned only with its offer. ]]
--!include counts
--!include term
--!include offer
local fields = redis.call('HMGET', KEYS[1], 'generation', 'phase')
if not fields[1] then return {'COLD'} end
if fields[1] ~= ARGV[1] then return {'STALE_GENERATION'} end
if fields[2] == 'finalized' then return {'FINALIZED'} end
local now = redis.call('TIME')
local now_us, freed, left = now[1] * 1000000 + now[2], 0, 0
for i = 4, #ARGV do
  local buyer = ARGV[i]
  if ARGV[3] == '0' then left = left + redis.call('ZREM', KEYS[2], buyer) end
  local until_us = redis.call('ZSCORE', KEYS[3], buyer)
  if until_us and (ARGV[3] == '0' or tonumber(until_us) <= now_us) then
    freed = freed + redis.call('ZREM', KEYS[3], buyer)
  end
end
add_to_counts(KEYS[1], freed, 0, 0 - freed, 0 - left)
return {'LEFT', make_offers(KEYS[1], KEYS[2], KEYS[3], tonumber(ARGV[2]), freed)}

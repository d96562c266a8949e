--[[ load: begin a generation of a voucher's state, in phase loading, unless Redis has one.

  KEYS[1]  {<shard>}:voucher:<id>:sale  hash: generation, phase, counts, opens_us, closes_us, term, ...
  ARGV[1]  generation, unique to this call
  ARGV[2]  initial_stock, units
  ARGV[3]  when the sale opens, microseconds since 1970
  ARGV[4]  when it closes, microseconds since 1970
  ARGV[5]  the longest drain: how long older orders in the queue may delay the sale, microseconds

  Returns {generation, phase, cursor} of the generation that Redis has now
    cursor  while loading: what is loaded, as in open

  Safe to repeat: an existing generation is left unchanged. ]]
--!include term
if not redis.call('HGET', KEYS[1], 'generation') then
  local now = redis.call('TIME')
  -- The fields that reserve reads come first: Redis searches a small hash from its start.
  redis.call('HSET', KEYS[1], 'generation', ARGV[1], 'phase', 'loading', 'counts', ARGV[2] .. ':0:0:0:0',
    'opens_us', ARGV[3], 'closes_us', ARGV[4], 'sold', 0, 'cancelled', 0, 'initial_stock', ARGV[2], 'cursor', 0, 'term', read_term(),
    'drain_until_us', string.format('%.0f', now[1] * 1000000 + now[2] + ARGV[5]))
end
return redis.call('HMGET', KEYS[1], 'generation', 'phase', 'cursor')

--[[ load: begin a generation of a voucher's state in Redis, unless one has begun; nobody can reserve in it yet.

  KEYS[1]  {<shard>}:voucher:<id>:state  hash: generation, phase, stock, pending, full_us, opens_us, closes_us, sold, initial_stock, cursor, drain_until_us
  ARGV[1]  number of the new generation: one that nobody else got
  ARGV[2]  initial_stock: units there ever are
  ARGV[3]  when the sale opens, microseconds since 1970
  ARGV[4]  when it closes
  ARGV[5]  how long it may be draining for what the queue holds, microseconds

  Returns {generation, phase, cursor} of the generation that there is now
    cursor  the buyer up to whom all that MySQL has is in; of interest while phase is loading

  Safe to repeat: what is there stays. ]]
if not redis.call('HGET', KEYS[1], 'generation') then
  local now = redis.call('TIME')
  -- First what reserve reads: a small hash is searched from its beginning.
  redis.call('HSET', KEYS[1], 'generation', ARGV[1], 'phase', 'loading', 'stock', ARGV[2], 'pending', 0,
    'full_us', 0, 'opens_us', ARGV[3], 'closes_us', ARGV[4], 'sold', 0, 'initial_stock', ARGV[2], 'cursor', 0,
    'drain_until_us', string.format('%.0f', now[1] * 1000000 + now[2] + ARGV[5]))
end
return redis.call('HMGET', KEYS[1], 'generation', 'phase', 'cursor')

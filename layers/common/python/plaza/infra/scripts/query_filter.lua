--[[ query_filter: may there be such an id?

  KEYS[1]  {<shard>}:<ids>:filter:meta  hash: bits, members, built_at, build_requested_at, next_bits, next_members, build_id, build_active_at
  KEYS[2]  {<shard>}:<ids>:filter       bitmap: the Bloom filter in use
  ARGV[1]  id
  ARGV[2]  bits an id needs: with fewer the filter is to be built again
  ARGV[3]  after how long it is to be built again, milliseconds
  ARGV[4]  after how long somebody else is asked to have it built, milliseconds

  Bounded by: 4 bits of a Bloom filter.

  Returns {may_exist, build_due}
    may_exist  0 there is none for sure; 1 there may be, or there is no filter to ask
    build_due  1 the caller is to ask for its build

  Safe to repeat: who repeats it isn't asked again, and the next after a while is. ]]
--!include bloom
--!include build
local now_ms = build_time_ms()
local meta = redis.call('HMGET', KEYS[1], 'bits', 'members', 'built_at', 'build_requested_at')
local bits = tonumber(meta[1] or 0)
local has_filter = meta[1] and redis.call('GETBIT', KEYS[2], bits) == 1
local is_due = not has_filter or now_ms - meta[3] > tonumber(ARGV[3]) or meta[2] * ARGV[2] > bits
local build_due = request_build(KEYS[1], is_due, meta[4], now_ms, ARGV[4])
if has_filter and not bloom_has(KEYS[2], bits, ARGV[1]) then return {0, build_due} end
return {1, build_due}

--[[ query_filter: look up an id in the filter.

  KEYS[1]  {<shard>}:<ids>:filter:meta  hash: fields as in infra/derived/id_filter.py
  KEYS[2]  {<shard>}:<ids>:filter       bitmap: the Bloom filter in use
  ARGV[1]  id
  ARGV[2]  minimum of bits per id: with fewer the filter is due for a build
  ARGV[3]  age at which the filter is due for a build, milliseconds
  ARGV[4]  time between two requests for a build, milliseconds

  Bounded by: 4 bits of a Bloom filter.

  Returns {may_exist, build_due}
    may_exist  0 the id does not exist; 1 it may exist, or there is no filter
    build_due  1 the caller has to queue a build

  Safe to repeat: a lost request for a build is made again after ARGV[4]. ]]
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

--[[ begin_filter: begin to build the Bloom filter of ids.

  KEYS[1]  {<shard>}:<ids>:filter:meta  hash: fields as in infra/derived/id_filter.py
  KEYS[2]  {<shard>}:<ids>:filter:next  bitmap: the filter that is being built
  ARGV[1]  build: a unique name
  ARGV[2]  size of the filter in bits
  ARGV[3]  milliseconds after which an idle build may be replaced

  Returns BEGUN, or BUSY (another build is active)

  Safe to repeat: a build that has begun continues with its members. ]]
--!include build
local now_ms = build_time_ms()
local meta = redis.call('HMGET', KEYS[1], 'build_id', 'build_active_at', 'next_bits')
local has_data = meta[3] and redis.call('GETBIT', KEYS[2], meta[3]) == 1
local begun = resume_build(ARGV[1], meta[1], meta[2], has_data, now_ms, ARGV[3])
if begun ~= nil then return begun and 'BEGUN' or 'BUSY' end
redis.call('UNLINK', KEYS[2])
redis.call('SETBIT', KEYS[2], ARGV[2], 1)
begin_build(KEYS[1], ARGV[1], now_ms, 'next_bits', ARGV[2], 'next_members', 0)
return 'BEGUN'

--[[ begin_filter: start to build the Bloom filter of all ids of a sort.

  KEYS[1]  {<shard>}:<ids>:filter:meta  hash: bits, members, built_at, build_requested_at, next_bits, next_members, build_id, build_active_at
  KEYS[2]  {<shard>}:<ids>:filter:next  bitmap: the filter that is being built
  ARGV[1]  build: a name nobody else uses
  ARGV[2]  bits
  ARGV[3]  for how long a build that does nothing is left alone, milliseconds

  Returns BEGUN, or BUSY (another build is at it)

  Safe to repeat: a build that has begun goes on, nothing in it is lost. ]]
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

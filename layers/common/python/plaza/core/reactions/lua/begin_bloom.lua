--[[ begin_bloom: start or resume the build of a target's Bloom filter.

  KEYS[1]  {<shard>}:<kind>:<target>:meta     hash: term, mode, filling, build_id, build_active_at, ...
  KEYS[2]  {<shard>}:<kind>:<target>:filling  bitmap: the Bloom filter under construction
  ARGV[1]  term of this node
  ARGV[2]  build: a unique name
  ARGV[3]  number of actors that the filter is sized for

  Bounded by: 20 doublings of the filter.

  Returns BEGUN; COLD (not loaded); COMPLETE (recent has all actors); BUSY (another build is active)

  Safe to repeat: a build of the same name resumes and keeps its bits. ]]
--!include bloom
--!include build
--!include meta
--!include rebuild
--!include idle
local meta_key, filling = KEYS[1], KEYS[2]
local meta = read_meta(meta_key, ARGV[1], 'build_id', 'build_active_at', 'filling')
if not meta then return 'COLD' end
if meta.complete then return 'COMPLETE' end

local now_ms = build_time_ms()
local has_data = meta.filling and redis.call('GETBIT', filling, meta.filling) == 1
local begun = resume_build(ARGV[2], meta.build_id, meta.build_active_at, has_data, now_ms, REBUILD_AGAIN_MS)
if begun ~= nil then return begun and 'BEGUN' or 'BUSY' end

local bits = BLOOM_FIRST_BITS
while bits < tonumber(ARGV[3]) * BLOOM_BITS_PER_ACTOR and bits < BLOOM_MAX_BITS do bits = bits * 2 end
redis.call('UNLINK', filling)
redis.call('SETBIT', filling, bits, 1)
expire_with(meta_key, filling)
begin_build(meta_key, ARGV[2], now_ms, 'filling', bits)
return 'BEGUN'

--[[ begin_bloom: start to build the Bloom filter of a target.

  KEYS[1]  {<shard>}:<kind>:<target>:meta     hash: complete, filling, filling_by, filling_at, ...
  KEYS[2]  {<shard>}:<kind>:<target>:filling  bitmap: the Bloom filter that is being built
  ARGV[1]  build: a name nobody else uses
  ARGV[2]  how many actors the filter should hold

  Returns BEGUN, or why not: AWAY (not in Redis), COMPLETE (recent has everybody), BUSY (another build is at it)

  Safe to repeat: a build that has begun goes on, nothing in it is lost. ]]
--!include bloom
--!include state
--!include idle
local meta_key, filling = KEYS[1], KEYS[2]
local meta = redis.call('HMGET', meta_key, 'total', 'complete', 'filling', 'filling_by', 'filling_at')
if not meta[1] then return 'AWAY' end
if meta[2] == '1' then return 'COMPLETE' end

local now = redis.call('TIME')
local now_us = now[1] * 1000000 + now[2]
if meta[4] and redis.call('GETBIT', filling, meta[3]) == 1 then
  if meta[4] == ARGV[1] then return 'BEGUN' end
  if tonumber(meta[5]) > now_us - REBUILD_AGAIN_US then return 'BUSY' end
end

local bits = BLOOM_FIRST_BITS
while bits < tonumber(ARGV[2]) * BLOOM_BITS_PER_ACTOR and bits < BLOOM_MOST_BITS do bits = bits * 2 end
redis.call('DEL', filling)
redis.call('SETBIT', filling, bits, 1)
leave_with(meta_key, filling)
redis.call('HSET', meta_key, 'filling', bits, 'filling_by', ARGV[1], 'filling_at', now_us)
return 'BEGUN'

--[[ begin_filter: start to build the Bloom filter of all ids of a sort.

  KEYS[1]  {<shard>}:<ids>:filter:meta  hash: bits, members, built_at, asked_at, next_bits, next_members, filling_by, filling_at
  KEYS[2]  {<shard>}:<ids>:filter:next  bitmap: the filter that is being built
  ARGV[1]  build: a name nobody else uses
  ARGV[2]  bits
  ARGV[3]  for how long a build that does nothing is left alone, milliseconds

  Returns BEGUN, or BUSY (another build is at it)

  Safe to repeat: a build that has begun goes on, nothing in it is lost. ]]
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local meta = redis.call('HMGET', KEYS[1], 'filling_by', 'filling_at', 'next_bits')
if meta[1] and redis.call('GETBIT', KEYS[2], meta[3]) == 1 then
  if meta[1] == ARGV[1] then return 'BEGUN' end
  if tonumber(meta[2]) > now_ms - ARGV[3] then return 'BUSY' end
end
redis.call('UNLINK', KEYS[2])
redis.call('SETBIT', KEYS[2], ARGV[2], 1)
redis.call('HSET', KEYS[1], 'filling_by', ARGV[1], 'filling_at', now_ms, 'next_bits', ARGV[2], 'next_members', 0)
return 'BEGUN'

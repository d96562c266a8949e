--[[ unclaim: take back a claim that came to nothing, unless it was made again since.

  KEYS[1]  {<shard>}:user:<id>:claims  zset: member -> when it was claimed, microseconds
  ARGV[1]  member
  ARGV[2]  when it was claimed
  ARGV[3]  when the member had been claimed before, which holds again; 0: it had not

  Returns 1 taken back, 0 not

  Safe to repeat: the second time the claim isn't the one that is meant. ]]
local claimed_us = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not claimed_us or tonumber(claimed_us) ~= tonumber(ARGV[2]) then return 0 end
if ARGV[3] == '0' then
  redis.call('ZREM', KEYS[1], ARGV[1])
else
  redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
end
return 1

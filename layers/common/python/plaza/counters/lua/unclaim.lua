--[[ unclaim: take back a claim that came to nothing, unless it was made again since.

  KEYS[1]  {<shard>}:user:<id>:claims  zset: member -> when it was claimed, microseconds
  KEYS[2]  {<shard>}:user:<id>:counted    hash: member -> up to when its claims are counted;
           member@time -> of a claim taken back after a later one was made: what held before it
  ARGV[1]  member
  ARGV[2]  when it was claimed
  ARGV[3]  when the member had been claimed before, which holds again; 0: it had not
  ARGV[4]  how long what is past is remembered, milliseconds

  Bounded by: 100 claims of the member that were taken back; one behind them holds until it expires.

  Returns 1 taken back, 0 not

  Safe to repeat: the second time the claim isn't the one that is meant. ]]
local claimed_us = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not claimed_us then return 0 end
if tonumber(claimed_us) ~= tonumber(ARGV[2]) then
  redis.call('HSET', KEYS[2], ARGV[1] .. '@' .. ARGV[2], ARGV[3])
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
  return 0
end
local MAX_EARLIER = 100
local before_us = ARGV[3]
local earlier_us = redis.call('HGET', KEYS[2], ARGV[1] .. '@' .. before_us)
for _ = 1, MAX_EARLIER do
  if not earlier_us then break end
  before_us = earlier_us
  earlier_us = redis.call('HGET', KEYS[2], ARGV[1] .. '@' .. before_us)
end
if tonumber(before_us) <= tonumber(redis.call('HGET', KEYS[2], ARGV[1]) or 0) then
  redis.call('ZREM', KEYS[1], ARGV[1])
else
  redis.call('ZADD', KEYS[1], before_us, ARGV[1])
end
return 1

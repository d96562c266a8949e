--[[ cancel_hold: take back a hold whose follow was not accepted, unless a later hold replaced it.

  KEYS[1]  {<shard>}:user:<id>:holds  zset: member -> time of its hold, microseconds
  KEYS[2]  {<shard>}:user:<id>:counted    hash: member -> time up to which its holds are counted;
           member@time -> time of the hold before the one of this time, which was taken back after a later hold
  ARGV[1]  member
  ARGV[2]  time of the hold, microseconds
  ARGV[3]  time of the member's earlier hold, which is restored; 0: none
  ARGV[4]  TTL of counted, milliseconds

  Bounded by: 100 holds of the member that were taken back; an earlier one stays until it expires.

  Returns 1 taken back, 0 not

  Safe to repeat: after the first time the member's hold has another time. ]]
local held_us = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not held_us then return 0 end
if tonumber(held_us) ~= tonumber(ARGV[2]) then
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

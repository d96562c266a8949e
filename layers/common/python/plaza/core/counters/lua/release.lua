--[[ release: drop holds of users that the totals in MySQL include.

  KEYS[1...]  {<shard>}:user:<id>:<what>  zset: and a hash, two for each hold:
           holds  zset: member -> time of its hold, microseconds
           counted hash: member -> time up to which its holds are counted, see cancel_hold
  ARGV[1]  TTL of counted, milliseconds
  ARGV[2...]  two for each hold: member, and the time up to which its holds are counted, microseconds

  Bounded by: 250 holds.

  Returns the number of dropped holds

  Safe to repeat: a later hold stays. ]]
local counted, dropped = {unpack(ARGV, 2)}, 0
for i = 1, #KEYS, 2 do
  local holds, counted_key = KEYS[i], KEYS[i + 1]
  local member, until_us = counted[i], counted[i + 1]
  local held_us = redis.call('ZSCORE', holds, member)
  if held_us and tonumber(held_us) <= tonumber(until_us) then
    dropped = dropped + redis.call('ZREM', holds, member)
  elseif held_us then
    -- If the later hold is taken back, cancel_hold must not restore the earlier one, which is counted.
    local counted_us = tonumber(redis.call('HGET', counted_key, member) or 0)
    if counted_us < tonumber(until_us) then
      redis.call('HSET', counted_key, member, until_us)
      redis.call('PEXPIRE', counted_key, ARGV[1])
    end
  end
end
return dropped

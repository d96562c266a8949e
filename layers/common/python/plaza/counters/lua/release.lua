--[[ release: drop claims of users that are counted by now.

  KEYS[1...]  {<shard>}:user:<id>:<what>  zset: and a hash, two for each claim:
           claims  zset: member -> when it was claimed, microseconds
           counted hash: member -> up to when its claims are counted, see unclaim
  ARGV[1]  how long that is remembered, milliseconds
  ARGV[2...]  of each claim: member, and the time up to which its claim is counted, microseconds

  Bounded by: 250 claims.

  Returns how many were dropped

  Safe to repeat: a claim that was made later stays. ]]
local counted, dropped = {unpack(ARGV, 2)}, 0
for i = 1, #KEYS, 2 do
  local claims, counted_key = KEYS[i], KEYS[i + 1]
  local member, until_us = counted[i], counted[i + 1]
  local claimed_us = redis.call('ZSCORE', claims, member)
  if claimed_us and tonumber(claimed_us) <= tonumber(until_us) then
    dropped = dropped + redis.call('ZREM', claims, member)
  elseif claimed_us then
    -- If the later claim is taken back, the one before it, counted now, must not hold again.
    local counted_us = tonumber(redis.call('HGET', counted_key, member) or 0)
    if counted_us < tonumber(until_us) then
      redis.call('HSET', counted_key, member, until_us)
      redis.call('PEXPIRE', counted_key, ARGV[1])
    end
  end
end
return dropped

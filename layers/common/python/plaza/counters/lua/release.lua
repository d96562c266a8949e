--[[ release: drop claims of users that the totals in MySQL include.

  KEYS[1...]  {<shard>}:user:<id>:<what>  zset: and a hash, two for each claim:
           claims  zset: member -> time of its claim, microseconds
           counted hash: member -> time up to which its claims are counted, see unclaim
  ARGV[1]  TTL of counted, milliseconds
  ARGV[2...]  two for each claim: member, and the time up to which its claims are counted, microseconds

  Bounded by: 250 claims.

  Returns the number of dropped claims

  Safe to repeat: a later claim stays. ]]
local counted, dropped = {unpack(ARGV, 2)}, 0
for i = 1, #KEYS, 2 do
  local claims, counted_key = KEYS[i], KEYS[i + 1]
  local member, until_us = counted[i], counted[i + 1]
  local claimed_us = redis.call('ZSCORE', claims, member)
  if claimed_us and tonumber(claimed_us) <= tonumber(until_us) then
    dropped = dropped + redis.call('ZREM', claims, member)
  elseif claimed_us then
    -- If the later claim is taken back, unclaim must not restore the earlier one, which is counted.
    local counted_us = tonumber(redis.call('HGET', counted_key, member) or 0)
    if counted_us < tonumber(until_us) then
      redis.call('HSET', counted_key, member, until_us)
      redis.call('PEXPIRE', counted_key, ARGV[1])
    end
  end
end
return dropped

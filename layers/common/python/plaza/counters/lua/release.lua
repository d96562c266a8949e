--[[ release: drop the claims of one user that are counted by now.

  KEYS[1]  {<shard>}:user:<id>:claims  zset: member -> when it was claimed, microseconds
  KEYS[2]  {<shard>}:user:<id>:past    hash: member -> up to when its claims are counted, see unclaim
  ARGV[1]  how long that is remembered, milliseconds
  ARGV[2...]  member, and the time up to which its claim is counted, microseconds; and so on

  Bounded by: 250 claims of a user.

  Returns how many were dropped

  Safe to repeat: a claim that was made later stays. ]]
local dropped = 0
for i = 2, #ARGV, 2 do
  local claimed_us = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if claimed_us and tonumber(claimed_us) <= tonumber(ARGV[i + 1]) then
    dropped = dropped + redis.call('ZREM', KEYS[1], ARGV[i])
  elseif claimed_us then
    -- If the later claim is taken back, the one before it, counted now, must not hold again.
    local counted_us = tonumber(redis.call('HGET', KEYS[2], ARGV[i]) or 0)
    if counted_us < tonumber(ARGV[i + 1]) then
      redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
      redis.call('PEXPIRE', KEYS[2], ARGV[1])
    end
  end
end
return dropped

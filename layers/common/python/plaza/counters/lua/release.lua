--[[ release: drop the claims of one user that are counted by now.

  KEYS[1]  {<shard>}:user:<id>:claims  zset: member -> when it was claimed, microseconds
  ARGV[1...]  member, and the time up to which its claim is counted, microseconds; and so on

  Returns how many were dropped

  Safe to repeat: a claim that was made later stays. ]]
local dropped = 0
for i = 1, #ARGV, 2 do
  local claimed_us = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if claimed_us and tonumber(claimed_us) <= tonumber(ARGV[i + 1]) then
    dropped = dropped + redis.call('ZREM', KEYS[1], ARGV[i])
  end
end
return dropped

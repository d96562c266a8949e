--[[ sweep: which days of a user have waited too long in the outbox, and when to look again.

  KEYS[1]  {<shard>}:user:<id>:checkins:outbox   hash: day -> when it was accepted, microseconds since 1970
  KEYS[2]  {<shard>}:checkins:outboxes           zset: user -> oldest in their outbox, or when it may be swept again
  ARGV[1]  user
  ARGV[2]  grace: how long a day may wait for its consumer, microseconds
  ARGV[3]  the longest wait between two sweeps of a user, microseconds

  Bounded by: 366 days in the outbox: one for each day that MySQL was away.

  Returns {day, accepted, day, accepted, ...}: what to publish again

  Safe to repeat: a day that is published twice is saved once. ]]
--!include outbox
local outbox, index = KEYS[1], KEYS[2]
local entries = redis.call('HGETALL', outbox)
if #entries == 0 then
  unindex_outbox(index, ARGV[1])
  return {}
end
local now = redis.call('TIME')
local now_us, grace_us = now[1] * 1000000 + now[2], tonumber(ARGV[2])
local oldest_us, due = now_us, {}
for i = 2, #entries, 2 do
  local accepted_us = tonumber(entries[i])
  oldest_us = math.min(oldest_us, accepted_us)
  if accepted_us <= now_us - grace_us then
    due[#due + 1], due[#due + 2] = entries[i - 1], entries[i]
  end
end
-- As long again as the oldest has waited: so each try is later than the one before.
reschedule_outbox(index, ARGV[1], now_us, sweep_wait_us(now_us - oldest_us, grace_us, ARGV[3]), grace_us)
return due

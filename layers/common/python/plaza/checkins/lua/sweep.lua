--[[ sweep: return the overdue days of a user's outbox, and schedule the next sweep.

  KEYS[1]  {<shard>}:user:<id>:checkins:outbox   hash: day -> when it was accepted, microseconds since 1970
  KEYS[2]  {<shard>}:checkins:outboxes           zset: user -> oldest entry of the outbox, or when it is due
  ARGV[1]  user
  ARGV[2]  grace: how long a day may wait for its consumer, microseconds
  ARGV[3]  longest wait between two sweeps of a user, microseconds

  Bounded by: 366 days in the outbox, one for each day of an outage of MySQL.

  Returns {day, accepted, day, accepted, ...}: the events to resend

  Safe to repeat: a day that is sent twice is stored once. ]]
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
-- The wait equals the age of the oldest entry, so it grows with each sweep.
reschedule_outbox(index, ARGV[1], now_us, sweep_wait_us(now_us - oldest_us, grace_us, ARGV[3]), grace_us)
return due

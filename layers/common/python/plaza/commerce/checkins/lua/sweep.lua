--[[ sweep: find the days of a user's outbox that are due.

  KEYS[1]  {<shard>}:user:<id>:checkins:outbox   hash: day -> when it was accepted, microseconds since 1970
  KEYS[2]  {<shard>}:checkins:outboxes           zset: user -> when the oldest entry was accepted
  KEYS[3]  {<shard>}:user:<id>:checkins:sweep    string: when the last sweep began, microseconds since 1970
  ARGV[1]  user
  ARGV[2]  resend_after_us: how long a day may wait for its consumer, microseconds
  ARGV[3]  longest wait until a day is sent again, microseconds

  Bounded by: 366 days in the outbox, one for each day of an outage of MySQL.

  Returns {progress read, progress to confirm, oldest, day, accepted, day, accepted, ...}: the events to resend
    progress to confirm  '' when the user has no outbox
    oldest  when the oldest entry was accepted, '' without an outbox

  Safe to repeat: a day that is sent twice is stored once. ]]
--!include outbox
local outbox, index, sweep = KEYS[1], KEYS[2], KEYS[3]
local entries = redis.call('HGETALL', outbox)
if #entries == 0 then
  unindex_outbox(index, ARGV[1])
  redis.call('UNLINK', sweep)
  return {'', '', ''}
end
local time = redis.call('TIME')
local now_us, resend_after_us, max_wait_us = time[1] * 1000000 + time[2], tonumber(ARGV[2]), tonumber(ARGV[3])
local progress = redis.call('GET', sweep) or ''
local swept_us = tonumber(progress) or 0
if is_ahead(swept_us, now_us) then swept_us = 0 end
local indexed_us = math.min(now_us, tonumber(redis.call('ZSCORE', index, ARGV[1]) or now_us))
local oldest_us, due = now_us, {}
for i = 2, #entries, 2 do
  local accepted_us = tonumber(entries[i])
  if is_due(accepted_us, swept_us, now_us, resend_after_us, max_wait_us) then
    due[#due + 1], due[#due + 2] = entries[i - 1], entries[i]
  end
  oldest_us = math.min(oldest_us, is_ahead(accepted_us, now_us) and indexed_us or accepted_us)
end
return {progress, string.format('%.0f', now_us), string.format('%.0f', oldest_us), unpack(due)}

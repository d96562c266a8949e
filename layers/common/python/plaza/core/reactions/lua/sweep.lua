--[[ sweep: find the entries of a target's outbox that are due, one page of it at a time.

  KEYS[1]  {<shard>}:<kind>:<target>:meta    hash: db_version, term, blocked, ...
  KEYS[2]  {<shard>}:<kind>:<target>:outbox  hash: actor -> want:version:base:nonce
  KEYS[3]  {<shard>}:outboxes                zset: member -> when the oldest entry was accepted
  KEYS[4]  {<shard>}:<kind>:<target>:sweep   string: swept:began:cursor:oldest
  ARGV[1]  term of this node
  ARGV[2]  member: the target's name in outboxes
  ARGV[3]  resend_after_us: time that an entry may wait for its consumer, microseconds
  ARGV[4]  count: approximate number of entries to scan
  ARGV[5]  maximum wait until an entry is sent again, microseconds

  The progress, in sweep, has the beginning of the last complete scan; the beginning and the cursor of this one; and the
  time of the oldest entry that it found. confirm_sweep stores it, so entries that were found and not sent stay due.

  Bounded by: ARGV[4] entries, about.

  Returns {code, db_version, progress read, progress to confirm, oldest, actor, entry, actor, entry, ...}: entries to
  publish again
    code  SWEPT; COLD (not loaded: hydrate, which confirms saved entries);
          GAP (a commit was lost: drop the target if it is still at db_version, then hydrate)
    db_version  the target's version, 0 when not loaded
    progress to confirm  '' when the target has no outbox
    oldest  when the oldest entry was accepted, '' before the end of the scan

  Safe to repeat: an event that is published twice is saved once. ]]
--!include meta
--!include outbox
local meta_key, outbox, index, sweep, member = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[2]
local time = redis.call('TIME')
local now_us, resend_after_us, max_wait_us = time[1] * 1000000 + time[2], tonumber(ARGV[3]), tonumber(ARGV[5])

local meta = read_meta(meta_key, ARGV[1], 'blocked')
local blocked = meta and tonumber(meta.blocked)
-- A target of another term may be blocked: unless it is hydrated, its keys never expire.
local is_of_other_term = not meta and redis.call('EXISTS', meta_key) == 1
local has_entries = redis.call('EXISTS', outbox) == 1
if not has_entries and not blocked and not is_of_other_term then
  unindex_outbox(index, member)
  redis.call('UNLINK', sweep)
  return {'SWEPT', '0', '', '', ''}
end
local code = 'SWEPT'
if not meta then code = 'COLD'
elseif blocked and math.abs(now_us - blocked) > MIN_WAIT_US then code = 'GAP' end -- a clock may have gone back

local progress = redis.call('GET', sweep) or ''
local swept, began, cursor, oldest = string.match(progress, '^(%d+):(%d+):(%d+):(%d+)$')
local swept_us, began_us, oldest_us = tonumber(swept), tonumber(began), tonumber(oldest)
if not began_us or is_ahead(began_us, now_us) then swept_us, cursor = 0, '0' end
if cursor == '0' then began_us, oldest_us = now_us, now_us end

local indexed_us = math.min(now_us, tonumber(redis.call('ZSCORE', index, member) or now_us))
local page = redis.call('HSCAN', outbox, cursor, 'COUNT', ARGV[4])
local result = {code, meta and string.format('%.0f', meta.db_version) or '0', progress, '', ''}
for i = 1, #page[2], 2 do
  local version = tonumber(string.match(page[2][i + 1], ':(%d+):'))
  if is_due(version, swept_us, now_us, resend_after_us, max_wait_us) then
    result[#result + 1], result[#result + 2] = page[2][i], page[2][i + 1]
  end
  oldest_us = math.min(oldest_us, is_ahead(version, now_us) and indexed_us or version)
end
local is_done = page[1] == '0'
result[4] = string.format('%.0f:%.0f:%s:%.0f', is_done and began_us or swept_us, began_us, page[1], oldest_us)
if is_done then result[5] = string.format('%.0f', has_entries and oldest_us or indexed_us) end
return result

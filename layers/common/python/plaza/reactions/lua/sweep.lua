--[[ sweep: find a target's outbox entries that waited too long, and schedule its next sweep.

  KEYS[1]  {<shard>}:<kind>:<target>:meta    hash: db_version, reign, blocked, sweeps, sweep_cursor, ...
  KEYS[2]  {<shard>}:<kind>:<target>:outbox  hash: actor -> want:version:base:nonce
  KEYS[3]  {<shard>}:outboxes                zset: member -> version of the oldest entry, or time of the next sweep
  ARGV[1]  reign of this node
  ARGV[2]  member: the target's name in outboxes
  ARGV[3]  grace: time that an entry may wait for its consumer, microseconds
  ARGV[4]  count: approximate number of entries to scan
  ARGV[5]  maximum wait between two sweeps of a target, microseconds

  Bounded by: ARGV[4] entries, about.

  Returns {code, db_version, actor, entry, actor, entry, ...}: entries to publish again
    code  SWEPT; COLD (not loaded: hydrate, which confirms saved entries);
          GAP (a commit was lost: drop the target if it is still at db_version, then hydrate)
    db_version  the target's version, 0 when not loaded

  Safe to repeat: an event that is published twice is saved once. ]]
--!include meta
--!include outbox
local meta_key, outbox, index, member = KEYS[1], KEYS[2], KEYS[3], ARGV[2]
local now = redis.call('TIME')
local now_us, grace_us = now[1] * 1000000 + now[2], tonumber(ARGV[3])

local meta, fields = read_meta(meta_key, ARGV[1], 'blocked', 'sweeps', 'sweep_cursor')
local blocked = meta and tonumber(fields[6])
-- A target of another reign may be blocked: unless it is hydrated, its keys never expire.
local is_of_other_reign = not meta and redis.call('EXISTS', meta_key) == 1
if redis.call('EXISTS', outbox) == 0 and not blocked and not is_of_other_reign then
  unindex_outbox(index, member)
  return {'SWEPT', '0'}
end
local code = 'SWEPT'
if not meta then code = 'COLD'
elseif blocked and now_us - blocked > MIN_WAIT_US then code = 'GAP' end

local sweeps, cursor = meta and tonumber(fields[7] or 0) or 0, meta and fields[8] or '0'
local page = redis.call('HSCAN', outbox, cursor, 'COUNT', ARGV[4])
local found = {code, meta and string.format('%.0f', meta.db_version) or '0'}
for i = 1, #page[2], 2 do
  local version = tonumber(string.match(page[2][i + 1], ':(%d+):'))
  if version <= now_us - grace_us then
    found[#found + 1], found[#found + 2] = page[2][i], page[2][i + 1]
  end
end

-- Before the end of the scan the target is due at once. After it, each sweep that found entries doubles the wait.
local wait_us = 0
if page[1] == '0' then
  if #found > 2 then
    wait_us = math.max(grace_us, MIN_WAIT_US) * 2 ^ math.min(sweeps + 1, 20)
    sweeps = sweeps + 1
  end
  wait_us = sweep_wait_us(wait_us, grace_us, ARGV[5])
end
if meta then redis.call('HSET', meta_key, 'sweeps', sweeps, 'sweep_cursor', page[1]) end
reschedule_outbox(index, member, now_us, wait_us, grace_us)
return found

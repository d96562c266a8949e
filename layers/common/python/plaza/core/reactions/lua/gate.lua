--[[ gate: decide one reaction of one actor to one target, and record it in the outbox.

  KEYS[1]  {<shard>}:<kind>:<target>:meta     hash: term, mode, base, accepted, db_version, loaded, changes, ...
  KEYS[2]  {<shard>}:<kind>:<target>:outbox   hash: actor -> want:version:base:nonce
  KEYS[3]  {<shard>}:<kind>:<target>:recent   zset: actor -> version, the newest saved actors
  KEYS[4]  {<shard>}:<kind>:<target>:bloom    bitmap: Bloom filter of saved actors that are not in recent
  KEYS[5]  {<shard>}:<kind>:<target>:filling  bitmap: the Bloom filter under construction, if any
  KEYS[6]  {<shard>}:<kind>:<target>:row_requests    hash: actor -> db_version when its row was requested
  KEYS[7]  {<shard>}:<kind>:<target>:toggles  hash: actor -> full_us of its token bucket for quick changes
  KEYS[8]  {<shard>}:outboxes                 zset: member -> when the oldest entry was accepted
  KEYS[9]  {<shard>}:<type>:<id>:existence    string: live:<external id>; missing for a target of Plaza
  ARGV[1]  actor
  ARGV[2]  wanted state: 1 on, 0 off
  ARGV[3]  nonce of this request, the same in each repeat
  ARGV[4]  deadline of the caller, microseconds on the clock of this node
  ARGV[5]  term of this node
  ARGV[6]  maximum of entries in the outbox
  ARGV[7]  member: the target's name in outboxes
  ARGV[8]  1 to accept only a repeat of the present state, else 0
  ARGV[9]  expected state: the actor's row in MySQL, 1 or 0; missing when it was not read
  ARGV[10]  db_version at which the expected state was read; missing without one, -1 before an external id
  ARGV[11]  external id of the target; missing for a target of Plaza

  Bounded by: 5 bits of a Bloom filter.

  Returns {code, now, total, version, db_version, loaded, changes}, or {UNKNOWN, now, rebuild}
    code     CHANGED, UNCHANGED (both are assertions: publish them with version); with nothing but now: COLD (not
             loaded: hydrate, try again), DELETED, HIDDEN (to new reactions of others than the author), LATE (past the
             deadline), FULL (the outbox), LIMITED (too many changes of this actor), NEW (no repeat), UNKNOWN (read the
             actor's row, try again with it as expected state), UNNAMED (the marker has not this external id: look
             the target up, try again)
    now      time of this node, microseconds
    total    of the target, after this reaction
    version  of the recorded state, microseconds
    db_version, loaded, changes  the order of this total among all of the target, see read.lua
    rebuild  1 when the caller should request a build of the Bloom filter

  Safe to repeat: the entry with this nonce has code and version, UNCHANGED once it is acknowledged; total is present. ]]
--!include meta
local meta_key, outbox, recent, bloom, filling = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local actor, want, nonce = ARGV[1], ARGV[2], ARGV[3]
local QUICK_US = 10000000  -- a reaction taken back within this time is a quick change

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if now > tonumber(ARGV[4]) then return {'LATE', now} end
-- Two ids may have one number, and only one of them is the target.
if ARGV[11] and redis.call('GET', KEYS[9]) ~= 'live:' .. ARGV[11] then return {'UNNAMED', now} end
local term, mode, base_total, accepted, db_version, loaded, changes = unpack(redis.call('HMGET', meta_key, 'term',
  'mode', 'base', 'accepted', 'db_version', 'loaded', 'changes'))
if not mode then return {'COLD', now} end
local status, filter = 'live', 'complete'
if mode ~= LIVE_COMPLETE then status, filter = parse_mode(mode) end
if term ~= ARGV[5] then return {'COLD', now} end
if status == 'deleted' then return {'DELETED', now} end
if status == 'hidden' and want == '1' and redis.call('HGET', meta_key, 'author') ~= actor then
  return {'HIDDEN', now}
end
local delta, outbox_count, newest = string.match(accepted, ACCEPTED_PATTERN)
local total = base_total + delta
local version = newest + 1
if now > version then version = now end
local version_text = string.format('%d', version)

-- Lua creates functions in each run, so the functions of a branch are included in it.
local since = redis.call('ZSCORE', recent, actor)
local base
if since then
  base = '1'
elseif filter == 'complete' then
  base = '0'
else
  --!include bloom
  --!include state
  base, filter = state_outside_recent(actor, filter, bloom)
end
local changed = base ~= want
local is_quick = since and want == '0' and now - since < QUICK_US

-- Most actors have no entry, which HSETNX tests while it writes one.
local is_new = base and not is_quick and not (changed and ARGV[8] == '1') and tonumber(outbox_count) < tonumber(ARGV[6])
  and redis.call('HSETNX', outbox, actor, want .. ':' .. version_text .. ':' .. base .. (changed and ':c' or ':u')
  .. nonce) == 1

if not is_new then
  --!include bucket
  local ROW_REQUEST_TTL_MS = 60000
  local MAX_TOGGLES = 20     -- burst of quick changes of one actor
  local TOGGLES_S = 60       -- time in which an empty bucket refills
  local MAX_TOGGLERS = 10000
  local row_requests, toggles = KEYS[6], KEYS[7]

  -- Takes one token from the actor's bucket for quick changes. Returns true when it is empty.
  local function is_limited()
    local limit_us = limit_bucket(now, MAX_TOGGLES / TOGGLES_S, MAX_TOGGLES)
    local before_us = tonumber(redis.call('HGET', toggles, actor) or 0)
    local full_us, early_us = take_token(math.min(before_us, limit_us), now, MAX_TOGGLES / TOGGLES_S, MAX_TOGGLES)
    if early_us > 0 then
      if before_us > limit_us then redis.call('HSET', toggles, actor, string.format('%d', limit_us)) end
      return true
    end
    if redis.call('HLEN', toggles) >= MAX_TOGGLERS then redis.call('UNLINK', toggles) end
    redis.call('HSET', toggles, actor, string.format('%d', full_us))
    redis.call('EXPIRE', toggles, TOGGLES_S)
    return false
  end

  local was
  local entry = redis.call('HGET', outbox, actor)
  if entry then
    local entry_version, flag, of_request
    was, entry_version, base, flag, of_request = string.match(entry, '^(%d):(%d+):(%d):(%a)(.*)$')
    if of_request == nonce then
      return {flag == 'c' and 'CHANGED' or 'UNCHANGED', now, total, tonumber(entry_version), db_version, loaded, changes}
    end
  else
    if not base then
      -- The expected state is valid if no row of this actor was applied since it was requested.
      local at = redis.call('HGET', row_requests, actor)
      if not (at and ARGV[9] and tonumber(ARGV[10]) >= tonumber(at)) then
        if not at then redis.call('HSET', row_requests, actor, db_version) end
        redis.call('PEXPIRE', row_requests, ROW_REQUEST_TTL_MS)
        --!include bloom
        --!include rebuild
        return {'UNKNOWN', now, request_rebuild(meta_key, filter, tonumber(base_total))}
      end
      base = ARGV[9]
    end
    if tonumber(outbox_count) >= tonumber(ARGV[6]) then return {'FULL', now} end
    was, is_new = base, true
  end
  changed = was ~= want
  if changed and ARGV[8] == '1' then return {'NEW', now} end
  if changed and (is_quick or not is_new) and is_limited() then return {'LIMITED', now} end
  redis.call('HSET', outbox, actor, want .. ':' .. version_text .. ':' .. base .. (changed and ':c' or ':u') .. nonce)
end

if is_new then outbox_count = outbox_count + 1 end
if changed then
  local by = want == '1' and 1 or -1
  delta, total = delta + by, total + by
  changes = string.format('%d', (changes or 0) + 1)
  redis.call('HSET', meta_key, 'accepted', string.format(ACCEPTED, delta, outbox_count, version), 'changes', changes)
else
  redis.call('HSET', meta_key, 'accepted', string.format(ACCEPTED, delta, outbox_count, version))
end
if is_new and outbox_count == 1 then
  redis.call('ZADD', KEYS[8], 'NX', version > now and now or version_text, ARGV[7])
  -- A target with outbox entries does not expire.
  redis.call('PERSIST', meta_key)
  redis.call('PERSIST', recent)
  if filter ~= 'complete' then
    redis.call('PERSIST', bloom)
    redis.call('PERSIST', filling)
  end
end
return {changed and 'CHANGED' or 'UNCHANGED', now, total, version, db_version, loaded, changes}

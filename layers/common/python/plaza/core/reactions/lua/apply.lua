--[[ apply: apply commits of MySQL to targets of a shard, in the order of each counter's versions.

  KEYS[1]  {<shard>}:outboxes  zset: member -> when the oldest entry was accepted
  KEYS[2...]  {<shard>}:<kind>:<target>:<what>  hash: and other types, ten for each commit:
           meta     hash: term, mode, base, accepted, db_version, floor, blocked, ...
           outbox   hash: actor -> want:version:base:nonce
           recent   zset: actor -> version, the newest saved actors
           bloom    bitmap: Bloom filter of the saved actors that are not in recent
           filling  bitmap: the Bloom filter under construction, if any
           ahead    hash: db_version -> total|rows, commits that wait for the one before them
           fence    string: newest db_version reported while the target was not loaded
           lease    string: token of the caller that loads the target
           row_requests    hash: actor -> db_version when its row was requested
           earliest zset: actor -> version, the first page of the earliest saved actors
  ARGV[1]  term of this node
  ARGV[2]  cap: maximum of actors in recent
  ARGV[3]  maximum of commits in ahead
  ARGV[4]  time at which a target without readers expires, milliseconds since 1970
  ARGV[5]  TTL of the fence, seconds
  ARGV[6]  number of rows in all commits
  ARGV[7...]  five for each commit:
           db_version: version of the counter after the commit
           total of the counter after the commit
           1 when this commit raised the version to db_version; 0 when it changed nothing: rows are as of db_version
           rows: "actor version state;..."
           member: the target's name in outboxes

  Bounded by: 250 rows in all, ensured by the caller; an evicted actor counts as four rows, a target as eight.

  Returns for each commit {code, outbox_count, rebuild, db_version}, or an error
    code     APPLIED; DUPLICATE (not newer than the target); BUFFERED (the commit before it is missing);
             MORE (call again, without rows); COLD (not loaded);
             DROPPED (it was loaded in another term: hydrate);
             GAP (an earlier commit was lost: drop the target if it is still at db_version)
    outbox_count  entries left in the outbox
    rebuild  1 when the caller should request a build of the Bloom filter
    db_version  version that the target has now

  Safe to repeat: the second time db_version is not newer than the target's, or is in ahead already. ]]
--!include bloom
--!include meta
--!include rebuild
--!include idle
--!include commits
--!include earliest
local AHEAD_TTL_S = 120
local EPOCH = 2 ^ 40 -- versions of a counter between two restores of MySQL
local term, cap, max_ahead = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local expires_at_ms, fence_ttl_s = ARGV[4], ARGV[5]
local index = KEYS[1]
local idle = {} -- targets without entries and missing commits
budget = MAX_ROWS - tonumber(ARGV[6])

-- Applies one commit to the target with these keys. db_version_text and total are text: versions have 16 digits.
local function apply_to_target(meta_key, outbox, recent, bloom, filling, ahead, fence, lease, row_requests, earliest,
    db_version_text, total, is_new, text, member)
  local db_version = tonumber(db_version_text)
  local meta = read_meta(meta_key, term, 'floor', 'blocked', 'filling', 'earliest')
  if not meta then
    -- A load of another term lacks this commit, and may come back with its slot or by replication.
    local dropped = redis.call('UNLINK', meta_key, recent, bloom, filling, row_requests, earliest) > 0
    -- The snapshot of the lease's owner may be older than this commit.
    if redis.call('EXISTS', lease) == 1 then
      if is_new and redis.call('HLEN', ahead) < max_ahead then
        redis.call('HSET', ahead, db_version_text, total .. '|' .. text)
        redis.call('EXPIRE', ahead, AHEAD_TTL_S)
      elseif db_version > tonumber(redis.call('GET', fence) or 0) then
        redis.call('SET', fence, db_version_text, 'EX', fence_ttl_s)
      end
    end
    return {dropped and 'DROPPED' or 'COLD', redis.call('HLEN', outbox), 0, 0}
  end
  meta.floor, meta.blocked, meta.filling = tonumber(meta.floor), tonumber(meta.blocked), tonumber(meta.filling or 0)
  if meta.earliest then meta.on_rows = watch_earliest(meta, meta_key, earliest, tonumber(meta.earliest)) end

  local before, outbox_count, code, has_next = meta.db_version, meta.outbox_count, 'APPLIED', false
  if db_version <= meta.db_version then
    -- The target has these rows or newer ones, so they confirm entries, unless MySQL was restored to before them. The
    -- base belongs to the target's version.
    code = 'DUPLICATE'
    local actors, versions, states = parse_rows(text)
    if #actors > 0 and math.floor(db_version / EPOCH) == math.floor(meta.db_version / EPOCH) then
      local delta = meta.delta
      confirm_entries(meta, outbox, actors, versions, states, false)
      -- No schedule is known that changes the total here; the order of totals does not depend on it.
      if meta.delta ~= delta then redis.call('HINCRBY', meta_key, 'changes', 1) end
    end
  elseif not is_new then
    code = 'BUFFERED'
    redis.call('HSETNX', ahead, db_version_text, PLACEHOLDER)
  elseif db_version == meta.db_version + 1 then
    if meta.blocked then redis.call('HDEL', ahead, db_version_text) end
    apply_commit(meta, row_requests, outbox, recent, db_version, tonumber(total), text)
  else
    code = 'BUFFERED'
    redis.call('HSET', ahead, db_version_text, total .. '|' .. text)
  end

  if meta.blocked or code == 'BUFFERED' then
    has_next = drain(meta, ahead, row_requests, outbox, recent)
    if meta.db_version >= db_version and code == 'BUFFERED' then code = 'APPLIED' end
    local left = redis.call('HLEN', ahead)
    local time = redis.call('TIME')
    local now = time[1] * 1000000 + time[2]
    if left == 0 then
      meta.blocked = nil
      redis.call('HDEL', meta_key, 'blocked')
    elseif not meta.blocked or meta.db_version > before then
      -- A blocked target does not expire, and the sweeper checks it.
      if not meta.blocked and meta.outbox_count == 0 then persist_keys(meta_key, recent, bloom, filling) end
      redis.call('ZADD', index, 'NX', now, member)
      meta.blocked = now
      redis.call('HSET', meta_key, 'blocked', now)
    end
    if not has_next and (left > max_ahead or (left > 0 and math.abs(now - meta.blocked) > GAP_US)) then
      code = 'GAP'
    end
  end
  local evicted, over = evict(meta, recent, bloom, filling, cap)
  if code ~= 'GAP' and (has_next or over > 0) then code = 'MORE' end
  if meta.db_version == before and meta.outbox_count == outbox_count and evicted == 0 and code ~= 'APPLIED' then
    return {code, meta.outbox_count, 0, meta.db_version}
  end
  if evicted > 0 then write_coverage(meta, meta_key) end
  if write_meta(meta, meta_key, recent, bloom, filling, expires_at_ms) then idle[#idle + 1] = member end
  local rebuild = evicted > 0 and request_rebuild(meta_key, filter_of(meta), meta.base) or 0
  return {code, meta.outbox_count, rebuild, meta.db_version}
end

local commits, answers = {unpack(ARGV, 7)}, {}
for k = 2, #KEYS, 10 do
  local c = #answers * 5
  -- An error of one target does not stop the others.
  local _, answer = pcall(apply_to_target, KEYS[k], KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], KEYS[k + 4], KEYS[k + 5],
    KEYS[k + 6], KEYS[k + 7], KEYS[k + 8], KEYS[k + 9], commits[c + 1], commits[c + 2], commits[c + 3] == '1',
    commits[c + 4], commits[c + 5])
  answers[#answers + 1] = type(answer) == 'table' and answer or {err = answer}
end
if #idle > 0 then redis.call('ZREM', index, unpack(idle)) end
return answers

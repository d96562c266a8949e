--[[ apply: bring a target to what one transaction of MySQL committed, in the order of its counter's versions.

  KEYS[1]  {<shard>}:<kind>:<target>:meta     hash: s, base, delta, ver, waiting, complete, floor, bloom, blocked, ...
  KEYS[2]  {<shard>}:<kind>:<target>:outbox   hash: actor -> want:ver:base:nonce
  KEYS[3]  {<shard>}:<kind>:<target>:recent   zset: actor -> ver, the newest saved actors
  KEYS[4]  {<shard>}:<kind>:<target>:bloom    bitmap: Bloom filter of saved actors that are not in recent
  KEYS[5]  {<shard>}:<kind>:<target>:filling  bitmap: the Bloom filter that is being built, if any
  KEYS[6]  {<shard>}:<kind>:<target>:ahead    hash: n -> total|rows, commits that wait for the one before them
  KEYS[7]  {<shard>}:<kind>:<target>:fence    string: newest n heard of while the target was not loaded
  KEYS[8]  {<shard>}:<kind>:<target>:lease    string: who loads the target
  KEYS[9]  {<shard>}:<kind>:<target>:asked    hash: actor -> s when its row was asked for
  KEYS[10]  {<shard>}:outboxes                 zset: member -> version of the oldest entry
  KEYS[11]  {<shard>}:<kind>:<target>:earliest  zset: actor -> ver, the first page of the earliest saved actors
  ARGV[1]  run_id of this node
  ARGV[2]  n: version of the counter after the commit
  ARGV[3]  total of the counter after the commit
  ARGV[4]  1 when this commit raised the version to n; 0 when it changed nothing and the rows are as of n
  ARGV[5]  rows: "actor ver state;...", at most 250
  ARGV[6]  cap: how many actors recent keeps
  ARGV[7]  how many commits may wait in ahead
  ARGV[8]  member: the target's name in outboxes
  ARGV[9]  when the target may expire if it has no reader, milliseconds since 1970
  ARGV[10]  TTL of the fence, seconds

  Bounded by: 250 rows, of which one that leaves recent counts as four.

  Returns {code, waiting, rebuild, s}
    code     APPLIED; DUPLICATE (n is not newer than s); BUFFERED (the commit before it is missing); MORE (call again, without rows);
             GAP (a commit before it was lost: drop the target, if it is still at s); COLD (not loaded)
    waiting  entries left in the outbox
    rebuild  1 when the caller should request a build of the Bloom filter
    s        version of the counter that the target is at now

  Safe to repeat: the second time n is not newer than s, or is in ahead already. ]]
--!include bloom
--!include state
--!include idle
--!include commits
--!include earliest
local AHEAD_TTL_S = 120
local meta_key, outbox, recent, bloom, filling = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local ahead, fence, lease, asked, index = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local n, total, is_new, cap = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1', tonumber(ARGV[6])

local meta, fields = read_meta(meta_key, ARGV[1], 'floor', 'blocked', 'sweeps', 'filling', 'earliest')
if not meta then
  -- Who loads the target has read a snapshot that may be older than this commit.
  if redis.call('EXISTS', lease) == 1 then
    if is_new and redis.call('HLEN', ahead) < tonumber(ARGV[7]) then
      redis.call('HSET', ahead, ARGV[2], ARGV[3] .. '|' .. ARGV[5])
      redis.call('EXPIRE', ahead, AHEAD_TTL_S)
    elseif n > tonumber(redis.call('GET', fence) or 0) then
      redis.call('SET', fence, ARGV[2], 'EX', ARGV[10])
    end
  end
  return {'COLD', redis.call('HLEN', outbox), 0, 0}
end
meta.floor, meta.blocked, meta.budget = tonumber(fields[11]), tonumber(fields[12]), MAX_ROWS
meta.filling = tonumber(fields[14] or 0)
if fields[15] then meta.note_rows = watch_earliest(meta, meta_key, KEYS[11], tonumber(fields[15])) end

local before, waiting, code, has_next = meta.s, meta.waiting, 'APPLIED', false
if n <= meta.s then
  -- At s the rows of these actors are at least as new: their entries are answered. The base is that of s.
  code = 'DUPLICATE'
  local actors, vers, states = parse_rows(ARGV[5])
  if #actors > 0 then answer_entries(meta, outbox, actors, vers, states, false) end
  meta.budget = meta.budget - #actors
elseif not is_new then
  code = 'BUFFERED'
  redis.call('HSETNX', ahead, ARGV[2], NOTE)
elseif n == meta.s + 1 then
  if meta.blocked then redis.call('HDEL', ahead, ARGV[2]) end
  apply_commit(meta, asked, outbox, recent, n, total, ARGV[5])
else
  code = 'BUFFERED'
  redis.call('HSET', ahead, ARGV[2], ARGV[3] .. '|' .. ARGV[5])
end

if meta.blocked or code == 'BUFFERED' then
  has_next = drain(meta, ahead, asked, outbox, recent)
  if meta.s >= n and code == 'BUFFERED' then code = 'APPLIED' end
  local left = redis.call('HLEN', ahead)
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  if left == 0 then
    meta.blocked = nil
    redis.call('HDEL', meta_key, 'blocked')
  elseif not meta.blocked or meta.s > before then
    -- Nothing of the target may expire, and the sweeper looks at it.
    if not meta.blocked and meta.waiting == 0 then stay(meta_key, recent, bloom, filling) end
    redis.call('ZADD', index, 'NX', now, ARGV[8])
    meta.blocked = now
    redis.call('HSET', meta_key, 'blocked', now)
  end
  if not has_next and (left > tonumber(ARGV[7]) or (left > 0 and now - meta.blocked > GAP_US)) then
    code = 'GAP'
  end
end
local evicted, over = evict(meta, recent, bloom, filling, cap)
if code ~= 'GAP' and (has_next or over > 0) then code = 'MORE' end
if meta.s == before and meta.waiting == waiting and evicted == 0 and code ~= 'APPLIED' then
  return {code, meta.waiting, 0, meta.s}
end
write_meta(meta, meta_key, recent, bloom, filling, index, ARGV[8], ARGV[9])
if meta.waiting == 0 and fields[13] then redis.call('HDEL', meta_key, 'sweeps', 'sweep_cursor') end
return {code, meta.waiting, evicted > 0 and request_rebuild(meta_key, meta) or 0, meta.s}

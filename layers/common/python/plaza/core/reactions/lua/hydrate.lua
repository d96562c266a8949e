--[[ hydrate: load a target from one snapshot of MySQL; its outbox stays on top.

  KEYS[1]  {<shard>}:<kind>:<target>:meta     hash: term, mode, base, accepted, db_version, floor, loaded, ...
  KEYS[2]  {<shard>}:<kind>:<target>:outbox   hash: actor -> want:version:base:nonce
  KEYS[3]  {<shard>}:<kind>:<target>:recent   zset: actor -> version, the newest saved actors
  KEYS[4]  {<shard>}:<kind>:<target>:bloom    bitmap: Bloom filter of an earlier load, deleted
  KEYS[5]  {<shard>}:<kind>:<target>:filling  bitmap: as KEYS[4]
  KEYS[6]  {<shard>}:<kind>:<target>:ahead    hash: db_version -> total|rows, commits that arrived since the lease
  KEYS[7]  {<shard>}:<kind>:<target>:fence    string: newest db_version reported while the target was not loaded
  KEYS[8]  {<shard>}:<kind>:<target>:lease    string: token of the caller that loads the target
  KEYS[9]  {<shard>}:<kind>:<target>:row_requests    hash: actor -> db_version when its row was requested
  KEYS[10]  {<shard>}:outboxes                 zset: member -> when the oldest entry was accepted
  KEYS[11]  {<shard>}:<kind>:<target>:loading  hash: the sums of rebase
  KEYS[12]  {<shard>}:<target>:existence           string: live, missing or deleted
  ARGV[1]  term of this node when the lease was taken
  ARGV[2]  token of the caller's lease, taken before the snapshot
  ARGV[3]  db_version of the snapshot
  ARGV[4]  total of the counter in the snapshot
  ARGV[5]  1 when the actors of ARGV[10...] are all that are on, else 0
  ARGV[6]  newest version of any row of the target, on or off
  ARGV[7]  member: the target's name in outboxes
  ARGV[8]  TTL of an idle target, milliseconds
  ARGV[9]  when MySQL took the snapshot, microseconds of its clock
  ARGV[10...]  actor, version, actor, version, ...: the newest actors, at most as many as recent keeps

  Bounded by: 1,000 actors, the default size of recent, and the versions of 100 commits ahead.

  Returns HYDRATED; MORE (hydrated, with commits ahead: call apply without rows); PRESENT (loaded already, unchanged);
          STALE (no lease, or a newer commit was reported: take a lease, read again);
          INCOMPLETE (rebase did not compare all entries of the outbox: take a lease, read again)

  Safe to repeat: the second time the target is present, or the lease is deleted. ]]
--!include bloom
--!include meta
--!include idle
--!include commits
local meta_key, outbox, recent, bloom, filling = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local ahead, fence, lease, row_requests, index = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local loading, existence = KEYS[11], KEYS[12]
if read_meta(meta_key, ARGV[1]) then return 'PRESENT' end
if redis.call('GET', lease) ~= ARGV[2] then return 'STALE' end
local db_version = tonumber(ARGV[3])
local l = redis.call('HMGET', loading, 'token', 'delta', 'outbox_count', 'version')
if l[1] ~= ARGV[2] then l = {ARGV[2], 0, 0, 0} end
-- The lease ends with any result: a caller that has to read again takes a new one at once.
redis.call('UNLINK', lease, loading)
if tonumber(redis.call('GET', fence) or 0) > db_version then return 'STALE' end
if redis.call('HLEN', outbox) ~= tonumber(l[3]) then return 'INCOMPLETE' end

redis.call('UNLINK', meta_key, recent, bloom, filling, row_requests)
local complete, floor = ARGV[5] == '1', 0
for i = 10, #ARGV, 500 do
  local newest = {}
  for j = i, math.min(i + 499, #ARGV), 2 do
    newest[#newest + 1], newest[#newest + 2] = ARGV[j + 1], ARGV[j]
    if not complete and (floor == 0 or tonumber(ARGV[j + 1]) < floor) then floor = tonumber(ARGV[j + 1]) end
  end
  redis.call('ZADD', recent, unpack(newest))
end
local meta = {
  db_version = db_version, base = tonumber(ARGV[4]), delta = tonumber(l[2]),
  version = math.max(tonumber(ARGV[6]), tonumber(l[4])), outbox_count = tonumber(l[3]),
  complete = complete, floor = floor, bloom = 0, filling = 0,
  status = redis.call('GET', existence) == 'deleted' and 'deleted' or 'live',
}
redis.call('HSET', meta_key, 'term', ARGV[1]) -- before the fields that write_meta adds

-- apply limits the number of commits in ahead.
for _, n in ipairs(redis.call('HKEYS', ahead)) do
  if tonumber(n) <= db_version then redis.call('HDEL', ahead, n) end
end
local time = redis.call('TIME')
if redis.call('EXISTS', ahead) == 1 then
  redis.call('PERSIST', ahead)
  meta.blocked = time[1] * 1000000 + time[2]
  redis.call('HSET', meta_key, 'blocked', meta.blocked)
end
if meta.outbox_count > 0 or meta.blocked then redis.call('ZADD', index, 'NX', time[1] * 1000000 + time[2], ARGV[7]) end
write_coverage(meta, meta_key)
local expires_at_ms = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[8])
if write_meta(meta, meta_key, recent, bloom, filling, expires_at_ms) then redis.call('ZREM', index, ARGV[7]) end
redis.call('HSET', meta_key, 'loaded', ARGV[9], 'changes', '0')
return meta.blocked and 'MORE' or 'HYDRATED'

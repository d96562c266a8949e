--[[ read: read the total of a target and whether one actor reacted to it.

  KEYS[1]  {<shard>}:<kind>:<target>:meta     hash: db_version, base, delta, complete, bloom, ...
  KEYS[2]  {<shard>}:<kind>:<target>:outbox   hash: actor -> want:version:base:nonce
  KEYS[3]  {<shard>}:<kind>:<target>:recent   zset: actor -> version, the newest saved actors
  KEYS[4]  {<shard>}:<kind>:<target>:bloom    bitmap: Bloom filter of saved actors that are not in recent
  KEYS[5]  {<shard>}:<kind>:<target>:filling  bitmap: the Bloom filter under construction, if any
  ARGV[1]  run_id of this node
  ARGV[2]  actor, or '' for an anonymous caller
  ARGV[3]  TTL of an idle target, milliseconds

  Bounded by: 4 bits of a Bloom filter.

  Returns {total, state, rebuild}, or false when the target is not loaded
    state    1 on, 0 off or anonymous, '' when it has to be read from MySQL
    rebuild  1 when the caller should request a build of the Bloom filter

  Safe to repeat: it only renews the TTL and stores the time of a requested build. ]]
--!include bloom
--!include state
--!include idle
local meta = read_meta(KEYS[1], ARGV[1])
if not meta then return false end
local total = meta.base + meta.delta
if meta.outbox_count == 0 then renew_ttl(KEYS[1], KEYS[3], KEYS[4], KEYS[5], tonumber(ARGV[3])) end
if ARGV[2] == '' then return {total, '0', 0} end
local entry = redis.call('HGET', KEYS[2], ARGV[2])
if entry then return {total, string.sub(entry, 1, 1), 0} end
if redis.call('ZSCORE', KEYS[3], ARGV[2]) then return {total, '1', 0} end
local state = state_outside_recent(ARGV[2], meta, KEYS[4])
if not state then return {total, '', request_rebuild(KEYS[1], meta)} end
return {total, state, 0}

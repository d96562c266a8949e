--[[ read: read the totals of targets of a shard and whether one actor reacted to each.

  KEYS[1...]  {<shard>}:<kind>:<target>:<what>  hash: and other types, five for each target:
           meta     hash: term, mode, base, accepted, db_version, loaded, changes, ...
           outbox   hash: actor -> want:version:base:nonce
           recent   zset: actor -> version, the newest saved actors
           bloom    bitmap: Bloom filter of saved actors that are not in recent
           filling  bitmap: the Bloom filter under construction, if any
  ARGV[1]  term of this node
  ARGV[2]  actor, or '' for an anonymous caller
  ARGV[3]  TTL of an idle target, milliseconds; 0 on a replica, which renews none

  Bounded by: 50 targets, a limit of the caller; 5 bits of a Bloom filter each.

  Returns for each target {total, state, rebuild, db_version, loaded, changes}, or false when it is not loaded, or an
          error
    state    1 on, 0 off or anonymous, '' when it has to be read from MySQL
    rebuild  1 when the caller should request a build of the Bloom filter
    db_version, loaded, changes  the order of this total among all of the target: of two, the later one is greater in
             the first of the three that differs. loaded is when MySQL took the snapshot of the load

  Safe to repeat: it only renews the TTL and stores the time of a requested build. ]]
--!include bloom
--!include meta
--!include state
--!include rebuild
--!include idle
local term, actor, ttl_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])

local function read_target(meta_key, outbox, recent, bloom, filling)
  local meta = read_meta(meta_key, term, 'loaded', 'changes')
  if not meta then return false end
  local function reply(state, rebuild)
    local db_version = string.format('%d', meta.db_version)
    return {meta.base + meta.delta, state, rebuild, db_version, meta.loaded, meta.changes}
  end
  if meta.outbox_count == 0 then renew_ttl(meta_key, recent, bloom, filling, ttl_ms) end
  if actor == '' then return reply('0', 0) end
  local entry = meta.outbox_count > 0 and redis.call('HGET', outbox, actor)
  if entry then return reply(string.sub(entry, 1, 1), 0) end
  if redis.call('ZSCORE', recent, actor) then return reply('1', 0) end
  local state, filter = state_outside_recent(actor, filter_of(meta), bloom)
  if not state then return reply('', request_rebuild(meta_key, filter, meta.base)) end
  return reply(state, 0)
end

local replies = {}
for k = 1, #KEYS, 5 do
  -- An error of one target does not stop the others.
  local ok, reply = pcall(read_target, KEYS[k], KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], KEYS[k + 4])
  if not ok and type(reply) ~= 'table' then reply = {err = reply} end
  replies[#replies + 1] = reply
end
return replies

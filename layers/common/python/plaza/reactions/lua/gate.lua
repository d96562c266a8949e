--[[ gate: decide one reaction of one actor to one target, and write the decision to the outbox.

  KEYS[1]  {<shard>}:<kind>:<target>:meta     hash: total, ver, dbver, complete, bloom, waiting, gone, ...
  KEYS[2]  {<shard>}:<kind>:<target>:pending  hash: actor -> state:ver:total, the outbox
  KEYS[3]  {<shard>}:<kind>:<target>:recent   zset: actor -> ver, the newest actors
  KEYS[4]  {<shard>}:<kind>:<target>:older    bitmap: Bloom filter of actors that fell out of recent
  KEYS[5]  {<shard>}:<kind>:<target>:filling  bitmap: the Bloom filter that is being built, if any
  KEYS[6]  {<shard>}:dirty                    zset: member -> oldest pending ver
  ARGV[1]  actor
  ARGV[2]  wanted state: 1 on, 0 off
  ARGV[3]  hint: the actor's state in MySQL, 1 or 0, or '' when nobody looked
  ARGV[4]  the dbver that the hint was read with, or 0
  ARGV[5]  cap: how many actors recent keeps
  ARGV[6]  limit: how many entries the outbox of a target may hold
  ARGV[7]  member: the target's name in dirty
  ARGV[8]  ttl of an idle target, milliseconds

  Returns {code, total, ver, rebuild}
    code     CHANGED, UNCHANGED; or with nothing behind it: COLD (not in Redis: see if there is such
             a target, hydrate, try again), GONE (deleted), FULL (the outbox is full);
             UNKNOWN (read the actor's row, try again with the hint)
    total    of the target, after this
    ver      microseconds; of this change, or the last one given
    rebuild  1 when the caller should ask for the Bloom filter to be built; UNKNOWN has it too

  Safe to repeat: the second time the actor is where they want to be, and the answer is UNCHANGED. ]]
--!include bloom
--!include recent
--!include state
--!include idle
local meta_key, pending, recent, older, filling = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local actor, want = ARGV[1], ARGV[2]

local meta = read_meta(meta_key)
if not meta then return {'COLD'} end
if meta.gone then return {'GONE'} end

local now = redis.call('TIME')
local ver = math.max(meta.ver + 1, now[1] * 1000000 + now[2])
local ver_text = string.format('%.0f', ver)

-- Who isn't pending is asked by doing: what recent says to the write tells if they were in it.
local entry = redis.call('HGET', pending, actor)
local full = not entry and meta.waiting >= tonumber(ARGV[6])
local state, written = nil, false
if entry then
  state = string.sub(entry, 1, 1)
elseif full then
  state = state_of(actor, meta, pending, recent, older)
elseif want == '1' then
  written = redis.call('ZADD', recent, 'NX', ver_text, actor) == 1
  state = not written and '1' or state_outside_recent(actor, meta, older)
else
  written = redis.call('ZREM', recent, actor) == 1
  state = written and '1' or state_outside_recent(actor, meta, older)
end
-- A hint older than what settle has told us could be the state before a change that is already settled.
if not state and ARGV[3] ~= '' and tonumber(ARGV[4]) >= meta.dbver then state = ARGV[3] end

if not state or state == want then
  if written then redis.call('ZREM', recent, actor) end -- they don't belong there: put it back
  if not state then return {'UNKNOWN', meta.total, meta.ver, ask_rebuild(meta_key, meta)} end
  keep_warm(meta_key, recent, older, filling, tonumber(ARGV[8]))
  return {'UNCHANGED', meta.total, meta.ver, 0}
end
if full then return {'FULL'} end

local total = meta.total + (want == '1' and 1 or -1)
redis.call('HSET', pending, actor, want .. ':' .. ver_text .. ':' .. total)
redis.call('HSET', meta_key, 'total', total, 'ver', ver_text, 'waiting', meta.waiting + (entry and 0 or 1))
if meta.waiting == 0 then
  redis.call('ZADD', KEYS[6], 'NX', ver_text, ARGV[7])
  stay(meta_key, recent, older, filling)
end
if entry and want == '0' then redis.call('ZREM', recent, actor) end
if entry and want == '1' then redis.call('ZADD', recent, ver_text, actor) end

-- While recent has everybody, it has as many as total says.
local cap = tonumber(ARGV[5])
if want == '0' or meta.complete and total <= cap then return {'CHANGED', total, ver, 0} end
if not keep_newest(cap, meta, meta_key, recent, older, filling) then
  return {'CHANGED', total, ver, 0}
end
return {'CHANGED', total, ver, ask_rebuild(meta_key, meta)}

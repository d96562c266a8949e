--[[ settle: tell a target what MySQL has; what it has need not be pending any more.

  KEYS[1]  {<shard>}:<kind>:<target>:meta     hash: total, ver, dbver, dbtotal, complete, bloom, waiting, stale, ...
  KEYS[2]  {<shard>}:<kind>:<target>:pending  hash: actor -> state:ver:total
  KEYS[3]  {<shard>}:<kind>:<target>:recent   zset: actor -> ver
  KEYS[4]  {<shard>}:<kind>:<target>:older    bitmap: Bloom filter
  KEYS[5]  {<shard>}:<kind>:<target>:filling  bitmap: the Bloom filter that is being built, if any
  KEYS[6]  {<shard>}:dirty                    zset: member -> oldest pending ver
  KEYS[7]  {<shard>}:<kind>:<target>:fence    string: the newest dbver heard while the target was away
  ARGV[1]  dbtotal: total of the counter after the commit
  ARGV[2]  dbver: ver of the counter after the commit
  ARGV[3]  member: the target's name in dirty
  ARGV[4]  when the target may leave if nobody comes by, milliseconds since 1970
  ARGV[5]  ttl of the fence, seconds
  ARGV[6]  cap: how many actors recent keeps
  ARGV[7...]  actor, ver, state, ...: the rows as they are now, at most a batch of them

  Returns {code, drift}
    code   AWAY (not in Redis), PENDING (some are left), QUIET, FORGOTTEN (in doubt: read again)
    drift  by how much total was corrected when it went quiet

  Safe to repeat: rows are states with versions, and the newest dbver stays. ]]
--!include bloom
--!include recent
--!include state
--!include idle
local meta_key, pending, recent, older, filling = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local dbtotal, dbver, cap = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[6])

local meta, said = read_meta(meta_key, 'dbtotal', 'stale', 'sweeps')
if not meta then
  if tonumber(redis.call('GET', KEYS[7]) or 0) < dbver then
    redis.call('SET', KEYS[7], ARGV[2], 'EX', ARGV[5])
  end
  return {'AWAY', 0}
end

local newest, stale, removed = meta.ver, false, 0
for i = 7, #ARGV, 3 do
  local actor, ver, on = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2] == '1'
  newest = math.max(newest, ver)
  local entry = redis.call('HGET', pending, actor)
  local held = entry and tonumber(string.match(entry, ':(%d+):'))
  if held and held <= ver then
    redis.call('HDEL', pending, actor)
    removed = removed + 1
  end
  -- Saved just as it was accepted: recent knows. But a scan for the new filter may have passed before it.
  local as_accepted = held == ver and meta.filling == 0
  if not as_accepted and (not held or held <= ver) then
    local present = redis.call('ZSCORE', recent, actor)
    -- A score above ver: they came back, and that is settled already.
    if present and not on and tonumber(present) <= ver then stale = true end
    -- They left and came back while Redis was away: they are newer than it thinks.
    if present and on and tonumber(present) < ver then redis.call('ZADD', recent, ver, actor) end
    if on and not present then
      -- They came while Redis was away, or before a scan for the new filter could see them.
      remember_older(meta, older, filling, actor)
      local lowest = redis.call('ZRANGE', recent, 0, 0, 'WITHSCORES')[2]
      if meta.complete then
        stale = true
      elseif lowest and ver > tonumber(lowest) then -- recent has everybody from its lowest on
        redis.call('ZADD', recent, ver, actor)
        keep_newest(cap, meta, meta_key, recent, older, filling)
      end
    end
  end
end

-- An older settle may come after a newer one: the newest that the database told stays.
if dbver < meta.dbver then dbver, dbtotal = meta.dbver, tonumber(said[9]) end
stale = stale or said[10] == '1'
local waiting = meta.waiting - removed
local quiet = waiting == 0
if quiet then redis.call('ZREM', KEYS[6], ARGV[3]) end
if quiet and stale then
  redis.call('DEL', meta_key, recent, older, filling)
  redis.call('SET', KEYS[7], string.format('%.0f', dbver), 'EX', ARGV[5])
  return {'FORGOTTEN', 0}
end

local drift = quiet and dbtotal - meta.total or 0
redis.call('HSET', meta_key, 'ver', string.format('%.0f', newest), 'total', meta.total + drift,
  'dbver', dbver, 'dbtotal', dbtotal, 'waiting', waiting)
if stale then redis.call('HSET', meta_key, 'stale', 1) end
if not quiet then return {'PENDING', 0} end
if said[11] then redis.call('HDEL', meta_key, 'sweeps', 'sweep_cursor') end
leave_at(ARGV[4], meta_key, recent)
if meta.bloom > 0 then leave_at(ARGV[4], older) end
if meta.filling > 0 then leave_at(ARGV[4], filling) end
return {'QUIET', drift}

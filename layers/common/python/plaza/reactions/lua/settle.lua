--[[ settle: tell a target what MySQL has; what it has need not be pending any more.

  KEYS[1]  {<shard>}:<kind>:<target>:meta     hash: total, ver, dbver, dbtotal, complete, bloom, stale, ...
  KEYS[2]  {<shard>}:<kind>:<target>:pending  hash: actor -> state:ver:total
  KEYS[3]  {<shard>}:<kind>:<target>:recent   zset: actor -> ver
  KEYS[4]  {<shard>}:<kind>:<target>:older    bitmap: Bloom filter
  KEYS[5]  {<shard>}:<kind>:<target>:filling  bitmap: the Bloom filter that is being built, if any
  KEYS[6]  {<shard>}:dirty                    zset: member -> oldest pending ver
  KEYS[7]  {<shard>}:<kind>:<target>:fence    string: the newest dbver heard while the target was away
  ARGV[1]  dbtotal: total of the counter after the commit
  ARGV[2]  dbver: ver of the counter after the commit
  ARGV[3]  member: the target's name in dirty
  ARGV[4]  ttl of an idle target, milliseconds
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

local meta = read_meta(meta_key)
if not meta then
  if tonumber(redis.call('GET', KEYS[7]) or 0) < dbver then
    redis.call('SET', KEYS[7], ARGV[2], 'EX', ARGV[5])
  end
  return {'AWAY', 0}
end

local newest, stale = meta.ver, false
for i = 7, #ARGV, 3 do
  local actor, ver, on = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2] == '1'
  newest = math.max(newest, ver)
  local entry = redis.call('HGET', pending, actor)
  local held = entry and tonumber(string.match(entry, ':(%d+):'))
  if not held or held <= ver then
    if held then redis.call('HDEL', pending, actor) end
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

local change = {}
if newest > meta.ver then change[1], change[2] = 'ver', newest end
if stale then change[#change + 1] = 'stale'; change[#change + 1] = 1 end
if dbver >= meta.dbver then
  change[#change + 1] = 'dbver'; change[#change + 1] = dbver
  change[#change + 1] = 'dbtotal'; change[#change + 1] = dbtotal
else
  dbtotal = tonumber(redis.call('HGET', meta_key, 'dbtotal'))
end
if #change > 0 then redis.call('HSET', meta_key, unpack(change)) end
if redis.call('EXISTS', pending) == 1 then return {'PENDING', 0} end

redis.call('ZREM', KEYS[6], ARGV[3])
if stale or redis.call('HGET', meta_key, 'stale') == '1' then
  redis.call('DEL', meta_key, recent, older, filling)
  return {'FORGOTTEN', 0}
end
redis.call('HDEL', meta_key, 'sweeps', 'sweep_cursor')
if meta.total ~= dbtotal then redis.call('HSET', meta_key, 'total', dbtotal) end
rest(meta_key, recent, older, filling, tonumber(ARGV[4]))
return {'QUIET', dbtotal - meta.total}

-- state: what Redis knows of a target, and of one actor on it.
local REBUILD_AGAIN_US = 600000000 -- a build that was asked for and not done by then was lost

-- nil when the target isn't in Redis. The values of more fields, if asked for, begin at the ninth of the second.
local function read_meta(key, ...)
  local m = redis.call('HMGET', key, 'total', 'ver', 'complete', 'bloom', 'dbver', 'filling', 'waiting', 'gone', ...)
  if not m[1] then return nil end
  return {
    total = tonumber(m[1]), ver = tonumber(m[2]), complete = m[3] == '1', bloom = tonumber(m[4]),
    dbver = tonumber(m[5]), filling = tonumber(m[6] or 0), waiting = tonumber(m[7]), gone = m[8] == '1',
  }, m
end

-- Of an actor who is neither pending nor in recent: '0' off, nil when only MySQL can say.
local function state_outside_recent(actor, meta, older)
  if meta.complete then return '0' end
  if meta.bloom > 0 and not bloom_has(older, meta.bloom, actor) then return '0' end
  return nil
end

-- '1' on, '0' off, nil when only MySQL can say. The first that knows answers.
local function state_of(actor, meta, pending, recent, older)
  local entry = redis.call('HGET', pending, actor)
  if entry then return string.sub(entry, 1, 1) end
  if redis.call('ZSCORE', recent, actor) then return '1' end
  return state_outside_recent(actor, meta, older)
end

-- 1 when the filter is missing or crowded and nobody was asked lately to build it, else 0.
local function ask_rebuild(key, meta)
  if meta.complete then return 0 end
  if meta.bloom > 0 and (meta.bloom >= meta.total * BLOOM_BITS_PER_ACTOR / 2 or meta.bloom >= BLOOM_MOST_BITS) then
    return 0
  end
  local now = redis.call('TIME')
  local now_us = now[1] * 1000000 + now[2]
  if tonumber(redis.call('HGET', key, 'rebuild_at') or 0) > now_us - REBUILD_AGAIN_US then return 0 end
  redis.call('HSET', key, 'rebuild_at', now_us)
  return 1
end

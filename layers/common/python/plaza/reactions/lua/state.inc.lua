-- state: the state of a target and of one actor on it. Needs bloom.
local PROTOCOL = '2'
local REBUILD_AGAIN_MS = 600000 -- a requested build that has not finished by then is requested again

-- Reads meta. nil when the target is not loaded, or was loaded before this node restarted or took over: its data may be
-- older than what was acknowledged. Additional fields are at index 11 and up of the second result. hydrate writes these
-- fields first, because a small hash is searched from its beginning.
local function read_meta(key, run_id, ...)
  local m = redis.call('HMGET', key, 'db_version', 'run_id', 'protocol', 'base', 'delta', 'version', 'outbox_count',
    'complete', 'bloom', 'deleted', ...)
  if not m[1] then return nil end
  if m[3] ~= PROTOCOL then error({err = 'PROTOCOL ' .. tostring(m[3]) .. ' of this target is not supported'}) end
  if m[2] ~= run_id then return nil end
  return {
    db_version = tonumber(m[1]), base = tonumber(m[4]), delta = tonumber(m[5]), version = tonumber(m[6]),
    outbox_count = tonumber(m[7]), complete = m[8] == '1', bloom = tonumber(m[9]), deleted = m[10] == '1',
  }, m
end

-- Returns the state of an actor that is neither in the outbox nor in recent: '0' off, nil when only MySQL has it.
local function state_outside_recent(actor, meta, bloom)
  if meta.complete then return '0' end
  if meta.bloom > 0 and not bloom_has(bloom, meta.bloom, actor) then return '0' end
  return nil
end

-- Returns 1 and stores the time when the Bloom filter is missing or too small and no build was requested; else 0.
-- The gate does not include build, whose fields this uses: each included function costs every run of a script.
local function request_rebuild(key, meta)
  if meta.complete then return 0 end
  if meta.bloom > 0 and (meta.bloom >= meta.base * BLOOM_BITS_PER_ACTOR / 2 or meta.bloom >= BLOOM_MAX_BITS) then
    return 0
  end
  local now = redis.call('TIME')
  local now_ms = now[1] * 1000 + math.floor(now[2] / 1000)
  if tonumber(redis.call('HGET', key, 'build_requested_at') or 0) > now_ms - REBUILD_AGAIN_MS then return 0 end
  redis.call('HSET', key, 'build_requested_at', now_ms)
  return 1
end

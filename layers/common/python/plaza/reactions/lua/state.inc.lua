-- state: the state of a target and of one actor on it. Needs bloom.
local PROTOCOL = '2'
local REBUILD_AGAIN_MS = 600000 -- a requested build that has not finished by then is requested again

-- The fields that each reaction reads are few and packed, because Redis searches a small hash from its beginning and
-- Lua parses each number. hydrate writes them first.
--   mode      protocol:live|deleted:complete|<bits of the Bloom filter>
--   accepted  delta:outbox_count:version
local LIVE_COMPLETE = PROTOCOL .. ':live:complete' -- the mode of most targets

-- Returns live or deleted, and complete or the bits of the Bloom filter, as text.
local function parse_mode(mode)
  local protocol, status, filter = string.match(mode, '^(%d+):(%a+):(%w+)$')
  if protocol ~= PROTOCOL then
    error({err = 'PROTOCOL ' .. string.match(mode, '^[^:]*') .. ' of this target is not supported'})
  end
  return status, filter
end

local function parse_accepted(accepted)
  return string.match(accepted, '^(%-?%d+):(%d+):(%d+)$')
end

-- Reads meta. nil when the target is not loaded, or was loaded before this node restarted or took over: its data may be
-- older than what was acknowledged. Additional fields are at index 6 and up of the second result.
local function read_meta(key, run_id, ...)
  local m = redis.call('HMGET', key, 'run_id', 'mode', 'base', 'accepted', 'db_version', ...)
  if not m[2] then return nil end
  local status, filter = parse_mode(m[2])
  if m[1] ~= run_id then return nil end
  local delta, outbox_count, version = parse_accepted(m[4])
  return {
    db_version = tonumber(m[5]), base = tonumber(m[3]), delta = tonumber(delta), version = tonumber(version),
    outbox_count = tonumber(outbox_count), complete = filter == 'complete', bloom = tonumber(filter) or 0,
    status = status,
  }, m
end

local function filter_of(meta)
  return meta.complete and 'complete' or string.format('%d', meta.bloom)
end

local function render_mode(status, filter)
  return PROTOCOL .. ':' .. status .. ':' .. filter
end

local function render_accepted(delta, outbox_count, version)
  return string.format('%d:%d:%d', delta, outbox_count, version)
end

-- Returns the state of an actor that is neither in the outbox nor in recent: '0' off, nil when only MySQL has it.
local function state_outside_recent(actor, filter, bloom)
  if filter == 'complete' then return '0' end
  if filter ~= '0' and not bloom_has(bloom, tonumber(filter), actor) then return '0' end
  return nil
end

-- Returns 1 and stores the time when the Bloom filter is missing or too small and no build was requested; else 0.
local function request_rebuild(key, filter, base)
  if filter == 'complete' then return 0 end
  local bits = tonumber(filter)
  if bits > 0 and (bits >= base * BLOOM_BITS_PER_ACTOR / 2 or bits >= BLOOM_MAX_BITS) then return 0 end
  local now = redis.call('TIME')
  local now_ms = now[1] * 1000 + math.floor(now[2] / 1000)
  if tonumber(redis.call('HGET', key, 'build_requested_at') or 0) > now_ms - REBUILD_AGAIN_MS then return 0 end
  redis.call('HSET', key, 'build_requested_at', string.format('%d', now_ms))
  return 1
end

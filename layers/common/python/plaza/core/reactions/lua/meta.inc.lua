-- meta: the fields of a target that its scripts share.
local PROTOCOL = '2'

-- What each reaction reads is packed into few fields, because Redis searches a small hash from its beginning.
local LIVE_COMPLETE = PROTOCOL .. ':live:complete' -- mode of most: protocol:live|hidden|deleted:complete|<bits>
local ACCEPTED = '%d:%d:%d' -- accepted: delta:outbox_count:version
local ACCEPTED_PATTERN = '^(%-?%d+):(%d+):(%d+)$'

-- Returns live, hidden or deleted, and complete or the bits of the Bloom filter, as text.
local function parse_mode(mode)
  local protocol, status, filter = string.match(mode, '^(%d+):(%a+):(%w+)$')
  if protocol ~= PROTOCOL then
    error({err = 'PROTOCOL ' .. string.match(mode, '^[^:]*') .. ' of this target is not supported'})
  end
  return status, filter
end

-- Reads meta. nil when the target is not loaded, or was loaded before this node restarted or took over: its data may be
-- older than what was acknowledged. Additional fields are read as text, false without one.
local function read_meta(key, term, ...)
  local m = redis.call('HMGET', key, 'term', 'mode', 'base', 'accepted', 'db_version', ...)
  if not m[2] then return nil end
  local status, filter = parse_mode(m[2])
  if m[1] ~= term then return nil end
  local delta, outbox_count, version = string.match(m[4], ACCEPTED_PATTERN)
  local meta = {
    db_version = tonumber(m[5]), base = tonumber(m[3]), delta = tonumber(delta), version = tonumber(version),
    outbox_count = tonumber(outbox_count), complete = filter == 'complete', bloom = tonumber(filter) or 0,
    status = status,
  }
  for i = 1, select('#', ...) do meta[select(i, ...)] = m[i + 5] end
  return meta
end

local function filter_of(meta)
  return meta.complete and 'complete' or string.format('%d', meta.bloom)
end

local function render_mode(status, filter)
  return PROTOCOL .. ':' .. status .. ':' .. filter
end

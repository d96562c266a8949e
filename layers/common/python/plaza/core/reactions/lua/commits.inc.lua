-- commits: commits of MySQL, applied to a target in the order of its counter's versions. Needs bloom, meta, idle.
local MAX_ROWS = 250        -- applied in one call; the next call applies the rest
local ROWS_OF_COMMIT = 4    -- cost of a commit from ahead, in rows, besides its own rows
local EVICTION_ROWS = 4     -- cost of an actor that moves to the filters, in rows
local GAP_US = 1000000      -- a commit that is missing for longer, or since a time ahead of the clock, is lost
local PLACEHOLDER = '?'     -- in ahead: this commit exists, its rows are not in Redis
local budget = MAX_ROWS     -- rows that this call may still apply or evict

-- Adds actors to the filter in use and to the one under construction.
local function add_to_filters(meta, bloom, filling, actors)
  if meta.bloom > 0 then bloom_add_all(bloom, meta.bloom, actors) end
  if meta.filling > 0 then bloom_add_all(filling, meta.filling, actors) end
end

-- Parses "actor version state;..." into text: ids have 19 digits. Versions, of 16, become numbers where compared.
local function parse_rows(text)
  local actors, versions, states = {}, {}, {}
  for actor, version, state in string.gmatch(text, '(%d+) (%d+) (%d)') do
    local i = #actors + 1
    actors[i], versions[i], states[i] = actor, version, state
  end
  return actors, versions, states
end

-- Removes the outbox entries that rows of MySQL confirm, and sets the base of the others if the rows are a new commit.
local function confirm_entries(meta, outbox, actors, versions, states, is_new)
  if meta.outbox_count == 0 then return end
  local entries, confirmed, moved = redis.call('HMGET', outbox, unpack(actors)), {}, {}
  local match, sub = string.match, string.sub -- locals are faster than globals
  for i, entry in ipairs(entries) do
    if entry then
      local want, entry_version, at, base = match(entry, '^(%d):(%d+):()(%d)')
      if tonumber(versions[i]) >= tonumber(entry_version) then
        confirmed[#confirmed + 1] = actors[i]
        meta.delta = meta.delta - (want - base)
      elseif is_new and base ~= states[i] then
        moved[#moved + 1] = actors[i]
        moved[#moved + 1] = sub(entry, 1, at - 1) .. states[i] .. sub(entry, at + 1)
        meta.delta = meta.delta + base - states[i]
      end
    end
  end
  if #confirmed > 0 then redis.call('HDEL', outbox, unpack(confirmed)) end
  if #moved > 0 then redis.call('HSET', outbox, unpack(moved)) end
  meta.outbox_count = meta.outbox_count - #confirmed
end

-- Updates recent from rows. It may contain actors below the floor until they are evicted.
local function apply_rows(recent, actors, versions, states)
  local on, off = {}, {}
  for i, actor in ipairs(actors) do
    if states[i] == '0' then off[#off + 1] = actor
    else
      on[#on + 1] = versions[i]
      on[#on + 1] = actor
    end
  end
  if #off > 0 then redis.call('ZREM', recent, unpack(off)) end
  if #on > 0 then redis.call('ZADD', recent, unpack(on)) end
end

-- Moves actors below the floor or above the cap to the filters, within the budget. Returns how many moved, and how many
-- are left.
local function evict(meta, recent, bloom, filling, cap)
  if meta.complete and meta.floor == 0 and meta.base <= cap then return 0, 0 end -- recent has base actors
  local over = redis.call('ZCARD', recent) - cap
  if meta.floor > 0 then
    over = math.max(over, redis.call('ZCOUNT', recent, '-inf', '(' .. string.format('%.0f', meta.floor)))
  end
  local count = math.min(over, math.floor(budget / EVICTION_ROWS))
  if count <= 0 then return 0, math.max(over, 0) end
  local popped, actors = redis.call('ZPOPMIN', recent, count), {}
  for i = 1, #popped, 2 do actors[#actors + 1] = popped[i] end
  meta.floor = math.max(meta.floor, tonumber(popped[#popped]))
  if meta.complete then
    meta.complete, meta.bloom = false, BLOOM_FIRST_BITS
    redis.call('SETBIT', bloom, BLOOM_FIRST_BITS, 1) -- its seal
  end
  add_to_filters(meta, bloom, filling, actors)
  budget = budget - count * EVICTION_ROWS
  return count, over - count
end

local function apply_commit(meta, row_requests, outbox, recent, db_version, total, text)
  local actors, versions, states = parse_rows(text)
  meta.db_version, meta.base = db_version, total
  local newest = '0' -- text: its comparison is faster than tonumber
  for _, version in ipairs(versions) do
    if #version > #newest or #version == #newest and version > newest then newest = version end
  end
  meta.version = math.max(meta.version, tonumber(newest))
  if #actors == 0 then return end
  -- A complete recent answers for all actors, so the gate requests no row.
  if not meta.complete and redis.call('EXISTS', row_requests) == 1 then
    redis.call('HDEL', row_requests, unpack(actors))
  end
  confirm_entries(meta, outbox, actors, versions, states, true)
  if meta.on_rows then meta.on_rows(actors, versions, states) end
  apply_rows(recent, actors, versions, states)
end

-- Applies commits from ahead, in order, until one is missing or the next one exceeds the budget. Returns true in the
-- second case.
local function drain(meta, ahead, row_requests, outbox, recent)
  while true do
    local key = string.format('%.0f', meta.db_version + 1)
    local commit = redis.call('HGET', ahead, key)
    if not commit or commit == PLACEHOLDER then return false end
    local total, text = string.match(commit, '^(%-?%d+)|(.*)$')
    local _, separators = string.gsub(text, ';', ';')
    local cost = separators + 1 + ROWS_OF_COMMIT
    if cost > budget and budget < MAX_ROWS then return true end
    budget = math.max(0, budget - cost)
    redis.call('HDEL', ahead, key)
    apply_commit(meta, row_requests, outbox, recent, meta.db_version + 1, tonumber(total), text)
  end
end

-- Stores what eviction changes.
local function write_coverage(meta, meta_key)
  redis.call('HSET', meta_key, 'mode', render_mode(meta.status, filter_of(meta)), 'floor', format('%d', meta.floor))
end

-- Stores what commits change, and the expiry of the keys: none while the outbox has entries. Returns true if the target
-- is idle, so that the caller removes it from outboxes. Numbers are passed as text, which Redis converts faster.
local function write_meta(meta, meta_key, recent, bloom, filling, expires_at_ms)
  redis.call('HSET', meta_key, 'base', format('%d', meta.base), 'accepted',
    format(ACCEPTED, meta.delta, meta.outbox_count, meta.version), 'db_version', format('%d', meta.db_version))
  if meta.outbox_count > 0 or meta.blocked then return false end
  expire_at(expires_at_ms, meta_key, recent)
  if meta.bloom > 0 then expire_at(expires_at_ms, bloom) end
  if meta.filling > 0 then expire_at(expires_at_ms, filling) end
  return true
end

-- idle: how long a target stays. All its keys go at one instant, or not at all.
local function leave_at(at_ms, ...)
  for _, key in ipairs({...}) do redis.call('PEXPIREAT', key, at_ms) end
end

-- Something is pending: nothing of the target may go.
local function stay(...)
  for _, key in ipairs({...}) do redis.call('PERSIST', key) end
end

-- Nothing is pending: the target goes after ttl_ms without a reader.
local function rest(meta_key, recent, older, filling, ttl_ms)
  local now = redis.call('TIME')
  leave_at(now[1] * 1000 + math.floor(now[2] / 1000) + ttl_ms, meta_key, recent, older, filling)
end

-- Somebody came by: begin the ttl again once half of it is over.
local function keep_warm(meta_key, recent, older, filling, ttl_ms)
  local left_ms = redis.call('PTTL', meta_key)
  if left_ms >= 0 and left_ms < ttl_ms / 2 then rest(meta_key, recent, older, filling, ttl_ms) end
end

-- A key made later goes when the target goes.
local function leave_with(meta_key, key)
  local at_ms = redis.call('PEXPIRETIME', meta_key)
  if at_ms >= 0 then leave_at(at_ms, key) else stay(key) end
end

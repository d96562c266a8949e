-- idle: expiry of a target. All its keys expire at the same instant, or none does.
local function expire_at(at_ms, ...)
  for _, key in ipairs({...}) do redis.call('PEXPIREAT', key, at_ms) end
end

-- A target with outbox entries does not expire.
local function persist_keys(...)
  for _, key in ipairs({...}) do redis.call('PERSIST', key) end
end

-- A target with an empty outbox expires after ttl_ms without a reader.
local function expire_idle(meta_key, recent, bloom, filling, ttl_ms)
  local now = redis.call('TIME')
  expire_at(now[1] * 1000 + math.floor(now[2] / 1000) + ttl_ms, meta_key, recent, bloom, filling)
end

-- Renews the TTL for a reader once half of it is over.
local function renew_ttl(meta_key, recent, bloom, filling, ttl_ms)
  local left_ms = redis.call('PTTL', meta_key)
  if left_ms >= 0 and left_ms < ttl_ms / 2 then expire_idle(meta_key, recent, bloom, filling, ttl_ms) end
end

-- Sets the target's expiry on a key that was created later.
local function expire_with(meta_key, key)
  local at_ms = redis.call('PEXPIRETIME', meta_key)
  if at_ms >= 0 then expire_at(at_ms, key) else persist_keys(key) end
end

-- idle: how long a target stays. All its keys expire at one instant, or none does.
local function expire_at(at_ms, ...)
  for _, key in ipairs({...}) do redis.call('PEXPIREAT', key, at_ms) end
end

-- The outbox has entries: nothing of the target may expire.
local function persist_keys(...)
  for _, key in ipairs({...}) do redis.call('PERSIST', key) end
end

-- The outbox is empty: the target expires after ttl_ms without a reader.
local function expire_idle(meta_key, recent, bloom, filling, ttl_ms)
  local now = redis.call('TIME')
  expire_at(now[1] * 1000 + math.floor(now[2] / 1000) + ttl_ms, meta_key, recent, bloom, filling)
end

-- A reader: start the TTL again once half of it is over.
local function renew_ttl(meta_key, recent, bloom, filling, ttl_ms)
  local left_ms = redis.call('PTTL', meta_key)
  if left_ms >= 0 and left_ms < ttl_ms / 2 then expire_idle(meta_key, recent, bloom, filling, ttl_ms) end
end

-- A key made later expires with the target.
local function expire_with(meta_key, key)
  local at_ms = redis.call('PEXPIRETIME', meta_key)
  if at_ms >= 0 then expire_at(at_ms, key) else persist_keys(key) end
end

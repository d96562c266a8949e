-- outbox: the index of a shard's outboxes. A zset: member -> when its oldest entry was accepted, or, after a sweep, a
-- later time. A member is due when the grace has passed since that time. Microseconds.
local MIN_WAIT_US = 1000000

-- Adds an outbox to the index. The gate, apply and hydrate repeat this and unindex_outbox in their own code: each
-- function of an include costs every run of a script.
local function index_outbox(index_key, member, accepted_us)
  redis.call('ZADD', index_key, 'NX', accepted_us, member)
end

-- Removes an empty outbox from the index.
local function unindex_outbox(index_key, member)
  redis.call('ZREM', index_key, member)
end

-- Returns the time to the next sweep: backoff_us, at least the grace and 1 s, at most max_wait_us.
local function sweep_wait_us(backoff_us, grace_us, max_wait_us)
  return math.min(math.max(backoff_us, grace_us, MIN_WAIT_US), tonumber(max_wait_us))
end

-- Makes a swept outbox due again after wait_us.
local function reschedule_outbox(index_key, member, now_us, wait_us, grace_us)
  redis.call('ZADD', index_key, 'XX', string.format('%.0f', now_us + wait_us - grace_us), member)
end

-- outbox: the index of the outboxes of a shard. A zset: member -> when its oldest entry was accepted, or, after a sweep,
-- the time that makes it due again. A member is due when the grace has passed since then. Microseconds.
local MIN_WAIT_US = 1000000

-- The outbox has an entry that was accepted then. The gate, apply and hydrate do this and the next by themselves: each
-- function of an include costs every run of a script.
local function index_outbox(index_key, member, accepted_us)
  redis.call('ZADD', index_key, 'NX', accepted_us, member)
end

-- The outbox is empty.
local function unindex_outbox(index_key, member)
  redis.call('ZREM', index_key, member)
end

-- How long the next sweep waits: backoff_us, but for the grace and a second at least, and max_wait_us at most.
local function sweep_wait_us(backoff_us, grace_us, max_wait_us)
  return math.min(math.max(backoff_us, grace_us, MIN_WAIT_US), tonumber(max_wait_us))
end

-- The outbox was swept, and is due again after wait_us.
local function reschedule_outbox(index_key, member, now_us, wait_us, grace_us)
  redis.call('ZADD', index_key, 'XX', string.format('%.0f', now_us + wait_us - grace_us), member)
end

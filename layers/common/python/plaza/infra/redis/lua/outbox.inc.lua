-- outbox: the index of a shard's outboxes, and when their entries are due. The index is a zset: member -> when the oldest
-- entry of its outbox was accepted, as of the last sweep. Microseconds.
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

-- Returns whether a stored time is ahead of the clock, which went back since.
local function is_ahead(at_us, now_us)
  return at_us > now_us + MIN_WAIT_US
end

-- Returns how many times an entry of this age was due: after resend_after_s, then whenever its age has doubled, and each
-- max_wait_us.
local function count_due(age_us, resend_after_us, max_wait_us)
  if age_us < resend_after_us then return 0 end
  local _, doublings = math.frexp(math.max(1, math.min(age_us, max_wait_us) / math.max(resend_after_us, MIN_WAIT_US)))
  return doublings + math.floor(age_us / max_wait_us)
end

-- Returns whether an entry became due after the sweep at swept_us. Without resend_after_us each entry is due; so is one that is
-- ahead of the clock, because its age is unknown.
local function is_due(accepted_us, swept_us, now_us, resend_after_us, max_wait_us)
  if resend_after_us <= 0 or is_ahead(accepted_us, now_us) then return true end
  local before = count_due(swept_us - accepted_us, resend_after_us, max_wait_us)
  return count_due(now_us - accepted_us, resend_after_us, max_wait_us) > before
end

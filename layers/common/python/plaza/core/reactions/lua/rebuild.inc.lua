-- rebuild: requests to build a target's Bloom filter. Needs bloom.
local REBUILD_AGAIN_MS = 600000 -- a requested build that has not finished by then is requested again

-- Returns 1 and stores the time when the Bloom filter is missing or too small and no build was requested; else 0.
local function request_rebuild(key, filter, base)
  if filter == 'complete' then return 0 end
  local bits = tonumber(filter)
  if bits > 0 and (bits >= base * BLOOM_BITS_PER_ACTOR / 2 or bits >= BLOOM_MAX_BITS) then return 0 end
  local now = redis.call('TIME')
  local now_ms = now[1] * 1000 + math.floor(now[2] / 1000)
  -- A time ahead of the clock is of a clock that went back.
  if math.abs(now_ms - tonumber(redis.call('HGET', key, 'build_requested_at') or 0)) < REBUILD_AGAIN_MS then return 0 end
  redis.call('HSET', key, 'build_requested_at', string.format('%d', now_ms))
  return 1
end

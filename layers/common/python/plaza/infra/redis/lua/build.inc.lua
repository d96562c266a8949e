-- build: a background build, page by page, beside the structure in use. Fields of its meta hash: built_at, the end of
-- the last build; build_id and build_active_at, the name of the active build and the time of its last page;
-- build_requested_at, when a reader was last asked to queue a build. Times are milliseconds since 1970; one that is far
-- ahead is of a clock that went back, and counts as old.
local function build_time_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Returns true if the build continues, false if another one was active within build_timeout_ms, nil if the caller has
-- to begin one. build_id and build_active_at are as in meta; has_data: the pages that were built still exist.
local function resume_build(build, build_id, build_active_at, has_data, now_ms, build_timeout_ms)
  if not build_id or not has_data then return nil end
  if build_id == build then return true end
  if math.abs(now_ms - build_active_at) < tonumber(build_timeout_ms) then return false end
  return nil
end

-- Begins a build; further arguments are fields and values of its own.
local function begin_build(key, build, now_ms, ...)
  redis.call('HSET', key, 'build_id', build, 'build_active_at', now_ms, ...)
end

-- Marks the build as active.
local function touch_build(key, ...)
  redis.call('HSET', key, 'build_active_at', build_time_ms(), ...)
end

-- Replaces the structure in use. UNLINK frees it in the background; RENAME alone would block on a large one.
local function swap_in_build(next_key, key)
  redis.call('UNLINK', key)
  if redis.call('EXISTS', next_key) == 1 then redis.call('RENAME', next_key, key) end
end

-- Ends the build; further arguments are fields and values of the structure in use.
local function finish_build(key, ...)
  redis.call('HSET', key, ...)
  redis.call('HDEL', key, 'build_id', 'build_active_at', 'build_requested_at')
end

-- Returns 1 if the reader has to queue a build: it is due, and none was requested within request_ttl_ms. Else 0.
local function request_build(key, is_due, build_requested_at, now_ms, request_ttl_ms)
  if not is_due then return 0 end
  if build_requested_at and math.abs(now_ms - build_requested_at) <= tonumber(request_ttl_ms) then return 0 end
  redis.call('HSET', key, 'build_requested_at', now_ms)
  return 1
end

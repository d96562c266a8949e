-- build: something that is built in the background, page by page, beside the one in use. Its meta hash has built_at, when
-- one was last finished; build_id and build_active_at, the name of the build under way and when its newest page came; and
-- build_requested_at, when a caller was last told to have one built. All in milliseconds.
local function build_time_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- true: the build goes on. false: another one is under way, and did something within build_timeout_ms. nil: neither, the
-- caller begins anew. build_id and build_active_at are as in meta; has_data: what was built so far is.
local function resume_build(build, build_id, build_active_at, has_data, now_ms, build_timeout_ms)
  if not build_id or not has_data then return nil end
  if build_id == build then return true end
  if now_ms - build_active_at < tonumber(build_timeout_ms) then return false end
  return nil
end

-- A build begins; further fields and values are about what it builds.
local function begin_build(key, build, now_ms, ...)
  redis.call('HSET', key, 'build_id', build, 'build_active_at', now_ms, ...)
end

-- A page came: the build is left alone for a while more.
local function touch_build(key, ...)
  redis.call('HSET', key, 'build_active_at', build_time_ms(), ...)
end

-- What was built takes the place of what was in use. RENAME would free that at once, which takes long if it is large.
local function swap_in_build(next_key, key)
  redis.call('UNLINK', key)
  if redis.call('EXISTS', next_key) == 1 then redis.call('RENAME', next_key, key) end
end

-- The last page came; further fields and values are about what is in use now.
local function finish_build(key, ...)
  redis.call('HSET', key, ...)
  redis.call('HDEL', key, 'build_id', 'build_active_at', 'build_requested_at')
end

-- 1 when the caller is to have it built: it is_due, and nobody was told so within request_ttl_ms. Else 0.
local function request_build(key, is_due, build_requested_at, now_ms, request_ttl_ms)
  if not is_due or build_requested_at and now_ms - build_requested_at <= tonumber(request_ttl_ms) then return 0 end
  redis.call('HSET', key, 'build_requested_at', now_ms)
  return 1
end

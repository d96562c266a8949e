-- build: something that is built in the background, page by page, beside the one in use. Its meta hash has built_at, when
-- one was last finished; filling_by and filling_at, the name of the build under way and when its newest page came; and
-- asked_at, when a caller was last told to have one built. All in milliseconds.
local function build_time_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- true: the build goes on. false: another one is under way, and did something within left_alone_ms. nil: neither, the
-- caller begins anew. filling_by and filling_at are as in meta; is_there: what was built so far is.
local function has_begun(build, filling_by, filling_at, is_there, now_ms, left_alone_ms)
  if not filling_by or not is_there then return nil end
  if filling_by == build then return true end
  if now_ms - filling_at < tonumber(left_alone_ms) then return false end
  return nil
end

-- A build begins; further fields and values are about what it builds.
local function begin_build(key, build, now_ms, ...)
  redis.call('HSET', key, 'filling_by', build, 'filling_at', now_ms, ...)
end

-- A page came: the build is left alone for a while more.
local function keep_build(key, ...)
  redis.call('HSET', key, 'filling_at', build_time_ms(), ...)
end

-- What was built takes the place of what was in use. RENAME would free that at once, which takes long if it is large.
local function put_in_use(next_key, key)
  redis.call('UNLINK', key)
  if redis.call('EXISTS', next_key) == 1 then redis.call('RENAME', next_key, key) end
end

-- The last page came; further fields and values are about what is in use now.
local function finish_build(key, ...)
  redis.call('HSET', key, ...)
  redis.call('HDEL', key, 'filling_by', 'filling_at', 'asked_at')
end

-- 1 when the caller is to have it built: it is_due, and nobody was told so within ask_again_ms. Else 0.
local function ask_for_build(key, is_due, asked_at, now_ms, ask_again_ms)
  if not is_due or asked_at and now_ms - asked_at <= tonumber(ask_again_ms) then return 0 end
  redis.call('HSET', key, 'asked_at', now_ms)
  return 1
end

-- bucket: a token bucket, stored as one integer: full_us, when it is full again, microseconds since 1970.
-- Returns full_us with one token less, and the wait in microseconds: 0 or less if there is a token.
-- A clock that goes back returns no token. infra/redis/token_bucket.py has the same arithmetic.
-- A full_us above limit_bucket is of a clock that went back further; callers store the limit in its place.
local function limit_bucket(now_us, per_s, burst)
  return now_us + burst * math.ceil(1000000 / per_s)
end

local function take_token(full_us, now_us, per_s, burst)
  local us_per_token = math.ceil(1000000 / per_s)
  full_us = math.max(now_us, full_us) + us_per_token
  return full_us, full_us - now_us - burst * us_per_token
end

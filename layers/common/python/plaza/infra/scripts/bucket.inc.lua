-- bucket: a token bucket, kept as one whole number: full_us, when it is full again, microseconds. In the past: it is full.
-- Returns full_us with one token less, and how many microseconds too early that is: up to 0, and there is one.
-- A clock that goes back brings no token twice. infra/token_bucket.py has the same arithmetic.
local function take_token(full_us, now_us, per_s, burst)
  local us_per_token = math.ceil(1000000 / per_s)
  full_us = math.max(now_us, full_us) + us_per_token
  return full_us, full_us - now_us - burst * us_per_token
end

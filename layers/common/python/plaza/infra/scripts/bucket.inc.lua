-- bucket: a bucket of tokens, kept as the time at which it will be full again, microseconds since 1970.
-- Returns that time with one more taken, and how much too early it is for that: above 0, don't take it.
local function take_one(full_us, now_us, per_s, burst)
  local token_us = 1000000 / per_s
  full_us = math.max(now_us, tonumber(full_us or 0)) + token_us
  return full_us, full_us - now_us - burst * token_us
end

local function refill(tokens, tokens_us, now_us, rate, burst)
  if not tokens then return burst end
  return math.min(burst, tokens + math.max(0, now_us - tokens_us) * rate / 1000000)
end

local function until_next_us(tokens, rate)
  return math.ceil((1 - tokens) / rate * 1000000)
end

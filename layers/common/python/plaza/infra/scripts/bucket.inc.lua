-- bucket: how full a bucket of tokens is by now. It held `tokens` at `tokens_us`; nothing known: it is full.
local function refill(tokens, tokens_us, now_us, rate, burst)
  if not tokens then return burst end
  return math.min(burst, tokens + math.max(0, now_us - tokens_us) * rate / 1000000)
end

-- How many microseconds until there is a whole one.
local function until_next_us(tokens, rate)
  return math.ceil((1 - tokens) / rate * 1000000)
end

-- offer: offer units in stock to the next buyers of the waitlist, at most 100, while the sale is live and open.
-- An offer ends accept_us from now, or with the sale.
local function make_offers(state, waitlist, offers, accept_us)
  local fields = redis.call('HMGET', state, 'phase', 'stock', 'waiting', 'opens_us', 'closes_us')
  local units = math.min(tonumber(fields[2]), tonumber(fields[3] or 0), 100)
  local now = redis.call('TIME')
  local now_us = now[1] * 1000000 + now[2]
  if fields[1] ~= 'live' or units <= 0 or now_us < tonumber(fields[4]) or now_us >= tonumber(fields[5]) then return 0 end
  local next, until_us = redis.call('ZPOPMIN', waitlist, units), math.min(now_us + accept_us, tonumber(fields[5]))
  local ends = {}
  for i = 1, #next, 2 do
    ends[i], ends[i + 1] = string.format('%.0f', until_us), next[i]
  end
  redis.call('ZADD', offers, unpack(ends))
  redis.call('HINCRBY', state, 'stock', 0 - units)
  redis.call('HINCRBY', state, 'waiting', 0 - units)
  redis.call('HINCRBY', state, 'offered', units)
  return units
end

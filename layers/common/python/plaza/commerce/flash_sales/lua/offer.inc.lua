-- offer: offer units in stock to the next buyers of the waitlist, at most 100, while the sale is live and open.
-- An offer ends accept_us from now, or with the sale. ``returned``: how many units the script returned to the stock.
-- If the waitlist was read under another term, this node may lack buyers and orders. Then units that buyers may wait for
-- are not offered or sold until the queue had 30 s and both were read again: the sale is loading. The script includes
-- counts and term, too.
local function make_offers(state, waitlist, offers, accept_us, returned)
  local fields = redis.call('HMGET', state, 'phase', 'counts', 'opens_us', 'closes_us', 'term')
  local stock, _, _, waiting = parse_counts(fields[2])
  local now = redis.call('TIME')
  local now_us = now[1] * 1000000 + now[2]
  if fields[1] ~= 'live' or stock <= 0 or now_us < tonumber(fields[3]) or now_us >= tonumber(fields[4]) then return 0 end
  if waiting == 0 and stock > returned then return 0 end -- the sale was not sold out
  if fields[5] ~= read_term() then
    redis.call('HSET', state, 'phase', 'loading', 'cursor', 0, 'drain_until_us',
      string.format('%.0f', now_us + 30000000))
    return 0
  end
  local units = math.min(stock, waiting, 100)
  if units == 0 then return 0 end
  local next, until_us = redis.call('ZPOPMIN', waitlist, units), math.min(now_us + accept_us, tonumber(fields[4]))
  local ends = {}
  for i = 1, #next, 2 do
    ends[i], ends[i + 1] = string.format('%.0f', until_us), next[i]
  end
  redis.call('ZADD', offers, unpack(ends))
  add_to_counts(state, 0 - units, 0, units, 0 - units)
  return units
end

--[[ check_voucher: check that the states of sales match their keys.

  KEYS[1]  one of the keys, for the node of a cluster
  ARGV     the prefix of the keys of each voucher: {<shard>}:voucher:<id>:

  Returns the first violation, '' without one. For tests: it uses KEYS, so a cluster needs a call per voucher. ]]
local function find_wrong(base)
  local s = redis.call('HMGET', base .. 'sale', 'initial_stock', 'counts', 'sold', 'phase', 'generation', 'cancelled',
    'term', 'rolled_back')
  if not s[1] then return '' end
  local stock, pending, offered, waiting = string.match(s[2], '^(%-?%d+):(%d+):(%d+):(%d+):%d+$')
  if not stock then return 'a count is out of range: ' .. s[2] end
  stock, pending, offered, waiting = tonumber(stock), tonumber(pending), tonumber(offered), tonumber(waiting)
  local initial_stock, sold, generation = tonumber(s[1]), tonumber(s[3]), s[5]
  local counts = 'initial ' .. initial_stock .. ', stock ' .. stock .. ', pending ' .. pending .. ', sold ' .. sold
  counts = counts .. ', offered ' .. offered .. ', waiting ' .. waiting
  if initial_stock ~= stock + pending + sold + offered then return 'the counts do not add up: ' .. counts end
  -- Only reservations that Redis lost can oversell, until MySQL has refused as many.
  if generation == '1' and not s[8] and stock < 0 then return 'oversold: ' .. counts end
  if sold < 0 or sold > initial_stock then return 'a count is out of range: ' .. counts end
  local is_current = string.find(redis.call('INFO', 'replication'), 'master_replid:' .. (s[7] or '?'), 1, true)
  if s[4] ~= 'live' and pending > 0 and is_current and not s[8] then return 'pending orders before the sale is live' end
  local is_listed = {}
  for _, entry in ipairs(redis.call('LRANGE', base .. generation .. ':recovery', 0, -1)) do
    is_listed[string.match(entry, '^(%d+:%d+):%d+$')] = true
  end
  if redis.call('ZCARD', base .. generation .. ':offers') ~= offered then return counts .. ': other offers' end
  if redis.call('ZCARD', base .. generation .. ':waitlist') ~= waiting then return counts .. ': other waitlist' end
  local cancelled = redis.call('SCARD', base .. generation .. ':cancelled')
  if cancelled ~= tonumber(s[6]) then return counts .. ', cancelled ' .. s[6] .. ', but in the set ' .. cancelled end
  local successes, pending_entries = 0, 0
  for _, bucket in ipairs(redis.call('KEYS', base .. generation .. ':buyers:*')) do
    local entries = redis.call('HGETALL', bucket)
    for i = 1, #entries, 2 do
      local status, order = string.match(entries[i + 1], '^(%a+):(%d+)$')
      if status == 'success' then
        successes = successes + 1
      else
        pending_entries = pending_entries + 1
        if not is_listed[order .. ':' .. entries[i]] then
          return 'order ' .. order .. ' of ' .. entries[i] .. ' is pending and not in the recovery list'
        end
      end
    end
  end
  if successes ~= sold then return counts .. ', but successes ' .. successes end
  if pending == 0 and next(is_listed) then return counts .. ', but the recovery list has entries' end
  if pending_entries ~= pending then return counts .. ', but pending entries ' .. pending_entries end
  return ''
end

for _, base in ipairs(ARGV) do
  local wrong = find_wrong(base)
  if wrong ~= '' then return wrong end
end
return ''

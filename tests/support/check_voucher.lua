--[[ check_voucher: check that the states of sales match their keys.

  KEYS[1]  one of the keys, for the node of a cluster
  ARGV     the prefix of the keys of each voucher: {<shard>}:voucher:<id>:

  Returns the first violation, '' without one. For tests: it uses KEYS, so a cluster needs a call per voucher. ]]
local function find_wrong(base)
  local s = redis.call('HMGET', base .. 'state', 'initial_stock', 'stock', 'pending', 'sold', 'phase', 'generation', 'cancelled')
  if not s[1] then return '' end
  local initial_stock, stock, pending, sold = tonumber(s[1]), tonumber(s[2]), tonumber(s[3]), tonumber(s[4])
  local counts = 'initial ' .. initial_stock .. ', stock ' .. stock .. ', pending ' .. pending .. ', sold ' .. sold
  if initial_stock ~= stock + pending + sold then return 'the counts do not add up: ' .. counts end
  -- Only reservations of an older generation can oversell, until MySQL has refused as many.
  if s[6] == '1' and stock < 0 then return 'oversold: ' .. counts end
  if pending < 0 or sold < 0 or sold > initial_stock then return 'a count is out of range: ' .. counts end
  if s[5] ~= 'live' and pending > 0 then return 'pending orders before the sale is live' end
  local recovery = base .. s[6] .. ':recovery'
  local waiting = redis.call('ZCARD', recovery)
  if waiting ~= pending then return counts .. ', but in the recovery index ' .. waiting end
  local cancelled = redis.call('SCARD', base .. s[6] .. ':cancelled')
  if cancelled ~= tonumber(s[7]) then return counts .. ', cancelled ' .. s[7] .. ', but in the set ' .. cancelled end
  local successes = 0
  for _, bucket in ipairs(redis.call('KEYS', base .. s[6] .. ':buyers:*')) do
    local entries = redis.call('HGETALL', bucket)
    for i = 1, #entries, 2 do
      local status, order = string.match(entries[i + 1], '^(%a+):(%d+)$')
      if status == 'success' then
        successes = successes + 1
      elseif not redis.call('ZSCORE', recovery, order .. ':' .. entries[i]) then
        return 'order ' .. order .. ' of ' .. entries[i] .. ' is pending and not in the recovery index'
      end
    end
  end
  if successes ~= sold then return counts .. ', but successes ' .. successes end
  return ''
end

for _, base in ipairs(ARGV) do
  local wrong = find_wrong(base)
  if wrong ~= '' then return wrong end
end
return ''

--[[ check_voucher: do the states of sales agree with their keys, at this instant?

  KEYS[1]  one of them, so that a cluster knows the node
  ARGV     what the keys of each voucher begin with: {<shard>}:voucher:<id>:

  Returns what is wrong, '' when nothing is. For tests: it looks for keys, so a cluster is asked voucher by voucher. ]]
local function find_wrong(base)
  local s = redis.call('HMGET', base .. 'state', 'initial_stock', 'stock', 'pending', 'sold', 'phase', 'generation')
  if not s[1] then return '' end
  local initial_stock, stock, pending, sold = tonumber(s[1]), tonumber(s[2]), tonumber(s[3]), tonumber(s[4])
  local counts = 'initial ' .. initial_stock .. ', stock ' .. stock .. ', pending ' .. pending .. ', sold ' .. sold
  if initial_stock ~= stock + pending + sold then return 'the invariant: ' .. counts end
  -- Only what an older generation let in can take more than there is, until MySQL has refused as many.
  if s[6] == '1' and stock < 0 then return 'more than there is: ' .. counts end
  if pending < 0 or sold < 0 or sold > initial_stock then return 'a count: ' .. counts end
  if s[5] ~= 'live' and pending > 0 then return 'pending before it was live' end
  local recovery = base .. s[6] .. ':recovery'
  local waiting = redis.call('ZCARD', recovery)
  if waiting ~= pending then return counts .. ', but waiting to be recovered ' .. waiting end
  local successes = 0
  for _, bucket in ipairs(redis.call('KEYS', base .. s[6] .. ':buyers:*')) do
    local entries = redis.call('HGETALL', bucket)
    for i = 1, #entries, 2 do
      local status, order = string.match(entries[i + 1], '^(%a+):(%d+)$')
      if status == 'success' then
        successes = successes + 1
      elseif not redis.call('ZSCORE', recovery, order .. ':' .. entries[i]) then
        return 'order ' .. order .. ' of ' .. entries[i] .. ' is pending and nothing recovers it'
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

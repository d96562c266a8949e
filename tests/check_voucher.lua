--[[ check_voucher: does the state of a sale agree with its keys, at this instant?

  KEYS[1]  the state of the voucher
  ARGV[1]  the pattern of the buckets of its present life
  ARGV[2]  the key of its pending orders

  Returns what is wrong, '' when nothing is. For tests: it looks for keys, which no cluster lets it. ]]
local s = redis.call('HMGET', KEYS[1], 'initial', 'stock', 'pending', 'sold', 'phase')
if not s[1] then return '' end
local initial, stock, pending, sold = tonumber(s[1]), tonumber(s[2]), tonumber(s[3]), tonumber(s[4])
local counts = 'initial ' .. initial .. ', stock ' .. stock .. ', pending ' .. pending .. ', sold ' .. sold
if initial ~= stock + pending + sold then return 'the invariant: ' .. counts end
if pending < 0 or sold < 0 or sold > initial then return 'a count: ' .. counts end
if s[5] ~= 'live' and pending > 0 then return 'pending before it was live' end
local waiting = redis.call('ZCARD', ARGV[2])
if waiting ~= pending then return counts .. ', but waiting to be recovered ' .. waiting end
local successes = 0
for _, bucket in ipairs(redis.call('KEYS', ARGV[1])) do
  local entries = redis.call('HGETALL', bucket)
  for i = 1, #entries, 2 do
    local status, order = string.match(entries[i + 1], '^(%a+):(%d+)$')
    if status == 'success' then
      successes = successes + 1
    elseif not redis.call('ZSCORE', ARGV[2], order .. ':' .. entries[i]) then
      return 'order ' .. order .. ' of ' .. entries[i] .. ' is pending and nothing recovers it'
    end
  end
end
if successes ~= sold then return counts .. ', but successes ' .. successes end
return ''

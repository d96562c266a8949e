--[[ recover: remove overdue entries from the recovery list, and append entries of pending orders again.

  KEYS[1]  {<shard>}:voucher:<id>:sale                   hash: generation, ...
  KEYS[2]  {<shard>}:voucher:<id>:<generation>:recovery  list: order:buyer:second, when reserved or recovered
  KEYS[3...]  {<shard>}:voucher:<id>:<generation>:buyers:<bucket>  hash: buyer -> status:order; of each entry
  ARGV[1]  generation
  ARGV[2...]  the entries that overdue returned

  Bounded by: 500 entries.

  Returns {order:buyer, order:buyer, ...}: the pending orders, longest overdue first. Their next recovery is due
    after resend_after_s

  Safe to repeat: only entries that are still the first are removed; an order that is sent twice is stored once. ]]
if redis.call('HGET', KEYS[1], 'generation') ~= ARGV[1] then return {} end
local function is_pending(buyers, buyer, order)
  return redis.call('HGET', buyers, buyer) == 'pending:' .. order
end

local entries = redis.call('LRANGE', KEYS[2], 0, #ARGV - 2)
local now_s, removed, pending, again, buckets = redis.call('TIME')[1], 0, {}, {}, {}
for i = 3, #KEYS do buckets[i - 2] = KEYS[i] end
for i = 2, #ARGV do
  local entry = ARGV[i]
  if entry ~= entries[i - 1] then break end -- another process was first
  removed = i - 1
  local order, buyer = string.match(entry, '^(%d+):(%d+):')
  if is_pending(buckets[i - 1], buyer, order) then
    pending[#pending + 1] = order .. ':' .. buyer
    again[#again + 1] = order .. ':' .. buyer .. ':' .. now_s
  end
end
if removed > 0 then redis.call('LTRIM', KEYS[2], removed, -1) end
if #again > 0 then redis.call('RPUSH', KEYS[2], unpack(again)) end
return pending

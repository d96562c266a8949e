--[[ overdue: return the first entries of the recovery list whose resend_after_us has passed.

  KEYS[1]  {<shard>}:voucher:<id>:sale                   hash: generation, ...
  KEYS[2]  {<shard>}:voucher:<id>:<generation>:recovery  list: order:buyer:second, when reserved or recovered
  ARGV[1]  generation
  ARGV[2]  resend_after_us: how long an order may wait for its consumer, microseconds
  ARGV[3]  limit of entries, at most 500

  Bounded by: ARGV[3] entries.

  Returns {order:buyer:second, ...}, longest overdue first. Many of the orders are no longer pending: recover
  removes their entries

  Safe to repeat: it writes nothing. ]]
if redis.call('HGET', KEYS[1], 'generation') ~= ARGV[1] then return {} end
local now = redis.call('TIME')
local due_s, now_s = now[1] + now[2] / 1000000 - ARGV[2] / 1000000, now[1] + 1
local entries, due = redis.call('LRANGE', KEYS[2], 0, ARGV[3] - 1), {}
for i, entry in ipairs(entries) do
  local at_s = tonumber(string.match(entry, '%d+$'))
  if at_s > due_s and at_s <= now_s then break end -- one that is later is of a clock that went back
  due[i] = entry
end
return due

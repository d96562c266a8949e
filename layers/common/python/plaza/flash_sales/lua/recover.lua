--[[ recover: return overdue pending orders, and delay their next recovery by the grace.

  KEYS[1]  {<shard>}:voucher:<id>:state                  hash: generation, ...
  KEYS[2]  {<shard>}:voucher:<id>:<generation>:recovery  zset: order:buyer, pending -> when reserved or recovered
  ARGV[1]  generation
  ARGV[2]  grace: how long an order may wait for its consumer, microseconds
  ARGV[3]  limit of orders, at most 500

  Bounded by: ARGV[3] orders.

  Returns {order:buyer, order:buyer, ...}, longest overdue first

  Safe to repeat: an order that is sent twice is stored once. ]]
if redis.call('HGET', KEYS[1], 'generation') ~= ARGV[1] then return {} end
local now = redis.call('TIME')
local now_us = now[1] * 1000000 + now[2]
local due = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now_us - ARGV[2]), 'LIMIT', 0, ARGV[3])
local scores = {}
for i, member in ipairs(due) do
  scores[2 * i - 1], scores[2 * i] = string.format('%.0f', now_us), member
end
if #due > 0 then redis.call('ZADD', KEYS[2], unpack(scores)) end
return due

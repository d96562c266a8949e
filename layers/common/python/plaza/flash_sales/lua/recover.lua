--[[ recover: which orders have been pending too long; they are looked at again after as long.

  KEYS[1]  {<shard>}:voucher:<id>:state             hash: generation, ...
  KEYS[2]  {<shard>}:voucher:<id>:<generation>:recovery  zset: order:buyer -> when it was reserved or last recovered, microseconds
  ARGV[1]  generation
  ARGV[2]  grace: how long an order may wait for its consumer, microseconds
  ARGV[3]  count: at most so many, 500

  Bounded by: ARGV[3] orders.

  Returns {order:buyer, order:buyer, ...}, those that wait longest first

  Safe to repeat: what it names is sent again, and a fact that is sent twice is saved once. ]]
if redis.call('HGET', KEYS[1], 'generation') ~= ARGV[1] then return {} end
local now = redis.call('TIME')
local now_us = now[1] * 1000000 + now[2]
local due = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now_us - ARGV[2]), 'LIMIT', 0, ARGV[3])
local again = {}
for i, member in ipairs(due) do
  again[2 * i - 1], again[2 * i] = string.format('%.0f', now_us), member
end
if #due > 0 then redis.call('ZADD', KEYS[2], unpack(again)) end
return due

--[[ withdraw: nobody can reserve any more, because the shop was deleted; or the shop is back, and the life is loaded anew.

  KEYS[1]  {<shard>}:voucher:<id>:state  hash: epoch, phase, cursor, ...
  ARGV[1]  epoch
  ARGV[2]  1: the shop was deleted; 0: it is there

  Returns 1 the phase was changed, 0 it was so already; -1 it is not in Redis; -2 another life has begun

  Safe to repeat: a phase that is right stays. What is loaded again is told by confirm, which counts once. ]]
local held = redis.call('HMGET', KEYS[1], 'epoch', 'phase')
if not held[1] then return -1 end
if held[1] ~= ARGV[1] then return -2 end
if (held[2] == 'gone') == (ARGV[2] == '1') then return 0 end
if ARGV[2] == '1' then
  redis.call('HSET', KEYS[1], 'phase', 'gone')
else
  redis.call('HSET', KEYS[1], 'phase', 'loading', 'cursor', 0)
end
return 1

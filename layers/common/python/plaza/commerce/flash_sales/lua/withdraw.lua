--[[ withdraw: end a withdrawn sale or one that is over, or load it again because its shop was restored.

  KEYS[1]  {<shard>}:voucher:<id>:sale  hash: generation, phase, cursor, ...
  ARGV[1]  generation
  ARGV[2]  phase: withdrawn; finalized; loading, of a withdrawn sale

  Returns {code}: CHANGED; UNCHANGED, the phase was right already; COLD, the state is not in Redis;
    STALE_GENERATION, another generation has begun

  Safe to repeat: a phase that is right stays, and confirm counts each success that is loaded again once. ]]
local fields = redis.call('HMGET', KEYS[1], 'generation', 'phase')
if not fields[1] then return {'COLD'} end
if fields[1] ~= ARGV[1] then return {'STALE_GENERATION'} end
if fields[2] == ARGV[2] or fields[2] == 'finalized' then return {'UNCHANGED'} end
if ARGV[2] ~= 'loading' then
  redis.call('HSET', KEYS[1], 'phase', ARGV[2])
elseif fields[2] == 'withdrawn' then
  redis.call('HSET', KEYS[1], 'phase', 'loading', 'cursor', 0)
else
  return {'UNCHANGED'}
end
return {'CHANGED'}

--[[ open: note how far a generation is loaded; when all is in and the queue holds nothing older, let people reserve.

  KEYS[1]  {<shard>}:voucher:<id>:state  hash: generation, phase, drain_until_us, cursor, ...
  ARGV[1]  number of the generation that was loaded
  ARGV[2]  cursor: all that MySQL has up to this buyer is in; '' when that is everybody
  ARGV[3]  1: the queue holds nothing older; 0: it may, so not before the drain is over

  Returns LIVE; LOADING and DRAINING, not yet; WITHDRAWN, its shop was deleted; STALE_GENERATION, another generation has begun

  Safe to repeat: what is live stays live, and a cursor only goes forward. ]]
local fields = redis.call('HMGET', KEYS[1], 'generation', 'phase', 'drain_until_us', 'cursor')
if fields[1] ~= ARGV[1] then return 'STALE_GENERATION' end
if fields[2] == 'live' then return 'LIVE' end
if fields[2] == 'withdrawn' then return 'WITHDRAWN' end
if fields[2] == 'loading' and ARGV[2] ~= '' then
  -- As text of one length: ids have more digits than numbers here can hold.
  local cursor = string.rep('0', 19 - #ARGV[2]) .. ARGV[2]
  if cursor > fields[4] then redis.call('HSET', KEYS[1], 'cursor', cursor) end
  return 'LOADING'
end
local now = redis.call('TIME')
if ARGV[3] == '1' or now[1] * 1000000 + now[2] >= tonumber(fields[3]) then
  redis.call('HSET', KEYS[1], 'phase', 'live')
  return 'LIVE'
end
redis.call('HSET', KEYS[1], 'phase', 'draining')
return 'DRAINING'

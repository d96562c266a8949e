--[[ open: note how far a life is loaded; when all is in and the queue holds nothing older, let people reserve.

  KEYS[1]  {<shard>}:voucher:<id>:state  hash: epoch, phase, hold_us, cursor, ...
  ARGV[1]  epoch of the life that was loaded
  ARGV[2]  cursor: all that MySQL has up to this buyer is in; '' when that is everybody
  ARGV[3]  1: the queue holds nothing older; 0: it may, so not before the hold is over

  Returns LIVE; LOADING and HELD, not yet; GONE, its shop was deleted; ENDED, another life has begun

  Safe to repeat: what is live stays live, and a cursor only goes forward. ]]
local held = redis.call('HMGET', KEYS[1], 'epoch', 'phase', 'hold_us', 'cursor')
if held[1] ~= ARGV[1] then return 'ENDED' end
if held[2] == 'live' then return 'LIVE' end
if held[2] == 'gone' then return 'GONE' end
if held[2] == 'loading' and ARGV[2] ~= '' then
  -- As text of one length: ids have more digits than numbers here can hold.
  local cursor = string.rep('0', 19 - #ARGV[2]) .. ARGV[2]
  if cursor > held[4] then redis.call('HSET', KEYS[1], 'cursor', cursor) end
  return 'LOADING'
end
local now = redis.call('TIME')
if ARGV[3] == '1' or now[1] * 1000000 + now[2] >= tonumber(held[3]) then
  redis.call('HSET', KEYS[1], 'phase', 'live')
  return 'LIVE'
end
redis.call('HSET', KEYS[1], 'phase', 'held')
return 'HELD'

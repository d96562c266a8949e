--[[ check_code: is this the code that was sent? A right one is used up, too many wrong ones burn it.

  KEYS[1]  {<shard>}:code:<who>  hash: mac, of the code; wrong, the wrong tries so far
  ARGV[1]  mac of what was typed
  ARGV[2]  how many wrong tries burn the code

  Returns {RIGHT, milliseconds it had left, wrong tries} or {WRONG}: another, or none is there

  Safe to repeat: a right one is gone, so that a repeat is wrong; a wrong one may cost two tries. ]]
local held = redis.call('HMGET', KEYS[1], 'mac', 'wrong')
if not held[1] then return {'WRONG'} end
if held[1] == ARGV[1] then
  local left_ms = redis.call('PTTL', KEYS[1])
  redis.call('DEL', KEYS[1])
  return {'RIGHT', left_ms, tonumber(held[2])}
end
if held[2] + 1 >= tonumber(ARGV[2]) then
  redis.call('DEL', KEYS[1])
else
  redis.call('HINCRBY', KEYS[1], 'wrong', 1)
end
return {'WRONG'}

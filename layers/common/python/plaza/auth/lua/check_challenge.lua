--[[ check_challenge: compare a code with that of a challenge. A right one is used up, too many wrong ones burn it.

  KEYS[1]  {<shard>}:challenge:<sha256>  hash: mac, of the code; phone, encrypted; wrong_tries, how many so far; used_by_try, last_wrong_try: names of tries
  ARGV[1]  mac of the code that was typed
  ARGV[2]  how many wrong tries burn the challenge
  ARGV[3]  name of this try, which no other has

  Returns {RIGHT, phone} or {WRONG}: another, used, burnt, or no such challenge

  Safe to repeat: a try that is sent again under its name has the same outcome and counts once. ]]
local fields = redis.call('HMGET', KEYS[1], 'mac', 'phone', 'wrong_tries', 'used_by_try', 'last_wrong_try')
if not fields[1] then return {'WRONG'} end
if fields[4] then
  if fields[4] == ARGV[3] then return {'RIGHT', fields[2]} end
  return {'WRONG'}
end
if fields[1] == ARGV[1] then
  redis.call('HSET', KEYS[1], 'used_by_try', ARGV[3])
  return {'RIGHT', fields[2]}
end
if fields[5] == ARGV[3] then return {'WRONG'} end
if fields[3] + 1 >= tonumber(ARGV[2]) then
  redis.call('UNLINK', KEYS[1])
else
  redis.call('HSET', KEYS[1], 'wrong_tries', fields[3] + 1, 'last_wrong_try', ARGV[3])
end
return {'WRONG'}

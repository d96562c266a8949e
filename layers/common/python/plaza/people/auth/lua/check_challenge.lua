--[[ check_challenge: use up a right code, or count a wrong try; too many of them burn the challenge.

  KEYS[1]  auth{<shard>}:challenge:<sha256>  hash: mac, phone, wrong_tries, used_by_try, last_wrong_try
  ARGV[1]  mac: keyed hash of the tried code
  ARGV[2]  number of wrong tries that burn the challenge
  ARGV[3]  unique name of this try

  Returns {RIGHT, phone}; {WRONG, phone} if the code is wrong or used; {WRONG} if it is burnt, or the challenge does not
  exist

  Safe to repeat: a repeated try has the same outcome and counts once. ]]
local fields = redis.call('HMGET', KEYS[1], 'mac', 'phone', 'wrong_tries', 'used_by_try', 'last_wrong_try')
if not fields[1] then return {'WRONG'} end
if fields[4] then
  if fields[4] == ARGV[3] then return {'RIGHT', fields[2]} end
  return {'WRONG', fields[2]}
end
if fields[1] == ARGV[1] then
  redis.call('HSET', KEYS[1], 'used_by_try', ARGV[3])
  return {'RIGHT', fields[2]}
end
if fields[5] == ARGV[3] then return {'WRONG', fields[2]} end
if fields[3] + 1 >= tonumber(ARGV[2]) then
  redis.call('UNLINK', KEYS[1])
else
  redis.call('HSET', KEYS[1], 'wrong_tries', fields[3] + 1, 'last_wrong_try', ARGV[3])
end
return {'WRONG', fields[2]}

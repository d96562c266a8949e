--[[ keep_code: the code that was sent to somebody, in the place of an earlier one.

  KEYS[1]  {<shard>}:code:<who>  hash: mac, of the code; wrong, the wrong tries so far
  ARGV[1]  mac
  ARGV[2]  wrong
  ARGV[3]  for how many milliseconds it works
  ARGV[4]  1: in any case; 0: only where there is none, because a newer one was sent meanwhile

  Returns 1 kept, 0 not

  Safe to repeat: it says what is there afterwards. ]]
if ARGV[4] == '0' and redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'mac', ARGV[1], 'wrong', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1

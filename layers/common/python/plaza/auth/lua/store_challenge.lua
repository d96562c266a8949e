--[[ store_challenge: store a challenge, with the keyed hash of its code and its phone.

  KEYS[1]  {<shard>}:challenge:<sha256>  hash: mac, of the code; phone, encrypted; wrong_tries, how many so far
  ARGV[1]  mac
  ARGV[2]  phone
  ARGV[3]  for how many milliseconds it works

  Returns 1

  Safe to repeat: it stores the same. ]]
redis.call('HSET', KEYS[1], 'mac', ARGV[1], 'phone', ARGV[2], 'wrong_tries', 0)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1

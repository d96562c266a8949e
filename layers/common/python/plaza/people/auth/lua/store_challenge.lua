--[[ store_challenge: store a challenge, with the keyed hash of its code and its phone.

  KEYS[1]  auth{<shard>}:challenge:<sha256>  hash: mac, phone, wrong_tries
  ARGV[1]  mac: keyed hash of the code
  ARGV[2]  phone, encrypted
  ARGV[3]  ttl, milliseconds

  Returns 1

  Safe to repeat: it stores the same values. ]]
redis.call('HSET', KEYS[1], 'mac', ARGV[1], 'phone', ARGV[2], 'wrong_tries', 0)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1

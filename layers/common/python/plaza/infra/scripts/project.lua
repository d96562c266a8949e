--[[ project: keep what MySQL said of something, unless Redis has heard something newer.

  KEYS[1]  {<shard>}:<type>:<id>:<what>  hash: ver, value; without value it is a fence: only the version was heard
  ARGV[1]  ver: the version of the value in MySQL
  ARGV[2]  value
  ARGV[3]  ttl, seconds
  ARGV[4]  1: keep the value in any case; 0: only where one is, else leave a fence
  ARGV[5]  ttl of a fence, seconds

  Returns 1 kept, 0 not (something newer is there, or a fence was left)

  Safe to repeat: of two versions the newer stays, whichever comes last. ]]
local held = redis.call('HMGET', KEYS[1], 'ver', 'value')
if held[1] and tonumber(held[1]) > tonumber(ARGV[1]) then return 0 end
if ARGV[4] == '0' and not held[2] then
  redis.call('HSET', KEYS[1], 'ver', ARGV[1])
  redis.call('EXPIRE', KEYS[1], ARGV[5])
  return 0
end
redis.call('HSET', KEYS[1], 'ver', ARGV[1], 'value', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1

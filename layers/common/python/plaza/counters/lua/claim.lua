--[[ claim: may this user have one more of what they are limited in? Then it is set aside for them.

  KEYS[1]  {<shard>}:user:<id>:counters  hash: ver, value (JSON by column)
  KEYS[2]  {<shard>}:user:<id>:claims    zset: member -> when it lapses, milliseconds since 1970
  ARGV[1]  column of value that is limited
  ARGV[2]  limit: the most it may be
  ARGV[3]  member: what this one is for
  ARGV[4]  how long a claim holds that nobody releases, milliseconds

  Returns 1 yes, 0 no, -1 the counters aren't in Redis: bring them, try again

  Safe to repeat: a member holds one claim. ]]
local value = redis.call('HGET', KEYS[1], 'value')
if not value then return -1 end
local now = redis.call('TIME')
local now_ms = now[1] * 1000 + math.floor(now[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now_ms)
local claimed = redis.call('ZCARD', KEYS[2])
if redis.call('ZSCORE', KEYS[2], ARGV[3]) then claimed = claimed - 1 end
if cjson.decode(value)[ARGV[1]] + claimed >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[2], now_ms + ARGV[4], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return 1

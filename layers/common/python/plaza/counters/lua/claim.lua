--[[ claim: may this user have one more of what they are limited in? Then it is set aside for them.

  KEYS[1]  {<shard>}:user:<id>:counters  hash: version, value (JSON by column)
  KEYS[2]  {<shard>}:user:<id>:claims    zset: member -> when it was claimed, microseconds
  KEYS[3]  {<shard>}:user:<id>:claim:<nonce>  string: the answer to this claim, for a repeat of it
  ARGV[1]  column of value that is limited
  ARGV[2]  limit: the most it may be
  ARGV[3]  member: what this one is for
  ARGV[4]  how long a claim holds that nobody releases, milliseconds
  ARGV[5]  how long the answer is kept, milliseconds: a repeat comes sooner
  ARGV[6]  deadline of the caller, microseconds on the clock of this node: a later claim would have no owner

  Bounded by: 5,000 claims of a user, the limit of follows.

  Returns {'CLAIMED', claimed at, claimed at before: 0 for a member that had no claim}, {'LIMITED'},
  {'LATE'}: the deadline has passed, {'COLD'}: the counters are not in Redis: project them, then try again

  Safe to repeat: a repeat has the nonce, and gets the answer of the first time as long as the member has a claim. ]]
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
if now_us > tonumber(ARGV[6]) then return {'LATE'} end
local value = redis.call('HGET', KEYS[1], 'value')
if not value then return {'COLD'} end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now_us - ARGV[4] * 1000))
local claimed = redis.call('ZCARD', KEYS[2])
local before_us = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[3]) or 0)
local first = before_us > 0 and redis.call('GET', KEYS[3])
if first then
  local first_us, first_before_us = string.match(first, '^(%d+):(%d+)$')
  return {'CLAIMED', tonumber(first_us), tonumber(first_before_us)}
end
if before_us > 0 then claimed = claimed - 1 end
if cjson.decode(value)[ARGV[1]] + claimed >= tonumber(ARGV[2]) then return {'LIMITED'} end
redis.call('ZADD', KEYS[2], string.format('%.0f', now_us), ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('SET', KEYS[3], string.format('%.0f:%.0f', now_us, before_us), 'PX', ARGV[5])
return {'CLAIMED', now_us, before_us}

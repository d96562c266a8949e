--[[ hold: reserve one slot below a user's limit, if the total and the holds leave one.

  KEYS[1]  {<shard>}:user:<id>:counters  hash: value (JSON by column), ...
  KEYS[2]  {<shard>}:user:<id>:holds    zset: member -> time of its hold, microseconds
  KEYS[3]  {<shard>}:user:<id>:hold:<nonce>  string: the reply to this hold, for a repeat of the command
  ARGV[1]  column: the total in value that is limited
  ARGV[2]  limit: the maximum of the total and the holds
  ARGV[3]  member: what the slot is reserved for
  ARGV[4]  TTL of a hold, milliseconds
  ARGV[5]  TTL of the reply, milliseconds: longer than the delay of any repeat
  ARGV[6]  deadline of the caller, microseconds on the clock of this node: no caller would release a later hold

  Bounded by: 5,000 holds of a user, the limit of follows.

  Returns {'HELD', time of the hold, time of the member's earlier hold or 0}, {'LIMITED'} (no slot is left),
          {'LATE'} (past the deadline), or {'COLD'} (Redis lacks the counters, or the total in them: project them, then try again)

  Safe to repeat: a repeat has the same nonce and gets the first reply while the member has a hold. ]]
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
if now_us > tonumber(ARGV[6]) then return {'LATE'} end
local value = redis.call('HGET', KEYS[1], 'value')
if not value then return {'COLD'} end
local total = cjson.decode(value)[ARGV[1]]
if type(total) ~= 'number' then return {'COLD'} end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now_us - ARGV[4] * 1000))
local held = redis.call('ZCARD', KEYS[2])
local before_us = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[3]) or 0)
local first = before_us > 0 and redis.call('GET', KEYS[3])
if first then
  local first_us, first_before_us = string.match(first, '^(%d+):(%d+)$')
  return {'HELD', tonumber(first_us), tonumber(first_before_us)}
end
if before_us > 0 then held = held - 1 end
if total + held >= tonumber(ARGV[2]) then return {'LIMITED'} end
redis.call('ZADD', KEYS[2], string.format('%.0f', now_us), ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('SET', KEYS[3], string.format('%.0f:%.0f', now_us, before_us), 'PX', ARGV[5])
return {'HELD', now_us, before_us}

--[[ layout_packed: read and write the state of a target, the numbers of the outbox packed as text. The gate does this.

  KEYS[1]  hash: term, mode, base, accepted (delta:outbox_count:version), db_version

  Returns the total ]]
local m = redis.call('HMGET', KEYS[1], 'term', 'mode', 'base', 'accepted')
local delta, outbox_count, version = string.match(m[4], '^(%-?%d+):(%d+):(%d+)$')
delta = delta + 1
redis.call('HSET', KEYS[1], 'accepted', string.format('%d:%d:%d', delta, outbox_count + 1, version + 1))
return m[3] + delta

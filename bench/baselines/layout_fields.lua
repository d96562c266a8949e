--[[ layout_fields: read and write the state of a target, one field a value.

  KEYS[1]  hash: db_version, term, protocol, base, delta, version, outbox_count, complete, bloom, deleted

  Returns the total ]]
local m = redis.call('HMGET', KEYS[1], 'db_version', 'term', 'protocol', 'base', 'delta', 'version', 'outbox_count',
  'complete', 'bloom', 'deleted')
local delta, outbox_count, version = m[5] + 1, m[7] + 1, m[6] + 1
redis.call('HSET', KEYS[1], 'delta', string.format('%d', delta), 'outbox_count', string.format('%d', outbox_count),
  'version', string.format('%d', version))
return m[4] + delta

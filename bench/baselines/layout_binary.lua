--[[ layout_binary: read and write the state of a target, all numbers packed by struct. No tool can show them as text.

  KEYS[1]  hash: term, state (db_version, base, delta, outbox_count, version, bits of the filter, flags)

  Returns the total ]]
local m = redis.call('HMGET', KEYS[1], 'term', 'state')
local db_version, base, delta, outbox_count, version, bits, flags = struct.unpack('<llllliB', m[2])
delta = delta + 1
redis.call('HSET', KEYS[1], 'state',
  struct.pack('<llllliB', db_version, base, delta, outbox_count + 1, version + 1, bits, flags))
return base + delta

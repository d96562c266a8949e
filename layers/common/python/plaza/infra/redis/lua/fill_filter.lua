--[[ fill_filter: add a page of ids to the filter that is being built; after the last page, put it in use.

  KEYS[1]  {<shard>}:<ids>:filter:meta  hash: fields as in infra/derived/id_filter.py
  KEYS[2]  {<shard>}:<ids>:filter       bitmap: the Bloom filter in use
  KEYS[3]  {<shard>}:<ids>:filter:next  bitmap: the filter that is being built
  ARGV[1]  build: its name
  ARGV[2]  1 if this page is the last, else 0
  ARGV[3...]  ids

  Bounded by: 200 ids a call, a limit of the caller.

  Returns FILLED, FINISHED, or LOST (the build ended, was replaced, or its keys were lost)

  Safe to repeat: setting a bit twice changes nothing; after the end it returns LOST. ]]
--!include bloom
--!include build
local meta = redis.call('HMGET', KEYS[1], 'build_id', 'next_bits', 'next_members')
if meta[1] ~= ARGV[1] or redis.call('GETBIT', KEYS[3], meta[2]) == 0 then return 'LOST' end
local bits, members = tonumber(meta[2]), tonumber(meta[3])
for i = 3, #ARGV do
  if not bloom_has(KEYS[3], bits, ARGV[i]) then
    bloom_add(KEYS[3], bits, ARGV[i])
    members = members + 1
  end
end
if ARGV[2] ~= '1' then
  touch_build(KEYS[1], 'next_members', members)
  return 'FILLED'
end
swap_in_build(KEYS[3], KEYS[2])
finish_build(KEYS[1], 'bits', bits, 'members', members, 'built_at', build_time_ms())
redis.call('HDEL', KEYS[1], 'next_bits', 'next_members')
return 'FINISHED'

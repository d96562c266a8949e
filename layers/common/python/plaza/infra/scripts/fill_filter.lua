--[[ fill_filter: add a page of ids to the filter that is being built, and put it in use after the last.

  KEYS[1]  {<shard>}:<ids>:filter:meta  hash: bits, members, built_at, build_requested_at, next_bits, next_members, build_id, build_active_at
  KEYS[2]  {<shard>}:<ids>:filter       bitmap: the Bloom filter in use
  KEYS[3]  {<shard>}:<ids>:filter:next  bitmap: the filter that is being built
  ARGV[1]  build: the name it was begun with
  ARGV[2]  1 when this page is the last, else 0
  ARGV[3...]  ids

  Bounded by: 200 ids a call, which the caller sees to.

  Returns FILLED, FINISHED, or LOST (it is gone, or another build took over)

  Safe to repeat: a bit that is set is set; after the end it answers LOST and changes nothing. ]]
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

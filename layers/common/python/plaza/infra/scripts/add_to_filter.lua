--[[ add_to_filter: add ids to the filter in use, and to the one that is being built.

  KEYS[1]  {<shard>}:<ids>:filter:meta  hash: bits, members, built_at, build_requested_at, next_bits, next_members, build_id, build_active_at
  KEYS[2]  {<shard>}:<ids>:filter       bitmap: the Bloom filter in use
  KEYS[3]  {<shard>}:<ids>:filter:next  bitmap: the filter that is being built
  ARGV[1...]  ids

  Bounded by: 200 ids a call, which the caller sees to.

  Returns 1 there is a filter, 0 there is none: its build will find what MySQL has

  Safe to repeat: a bit that is set is set. ]]
--!include bloom
local meta = redis.call('HMGET', KEYS[1], 'bits', 'next_bits')
local function add(key, bits, members_field)
  if not bits or redis.call('GETBIT', key, bits) == 0 then return 0 end
  for i = 1, #ARGV do
    if not bloom_has(key, tonumber(bits), ARGV[i]) then
      bloom_add(key, tonumber(bits), ARGV[i])
      redis.call('HINCRBY', KEYS[1], members_field, 1)
    end
  end
  return 1
end
return math.max(add(KEYS[2], meta[1], 'members'), add(KEYS[3], meta[2], 'next_members'))

--[[ add_to_filter: add ids to the filter in use, and to the one that is being built.

  KEYS[1]  {<shard>}:<ids>:filter:meta  hash: fields as in infra/derived/id_filter.py
  KEYS[2]  {<shard>}:<ids>:filter       bitmap: the Bloom filter in use
  KEYS[3]  {<shard>}:<ids>:filter:next  bitmap: the filter that is being built
  ARGV[1...]  ids

  Bounded by: 200 ids a call, a limit of the caller.

  Returns 1 if there is a filter, 0 if there is none: its build will read the ids from MySQL

  Safe to repeat: setting a bit twice changes nothing. ]]
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

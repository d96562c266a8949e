--[[ fill_bloom: add a page of actors to the Bloom filter under construction; the last page puts it into use.

  KEYS[1]  {<shard>}:<kind>:<target>:meta     hash: mode, filling, build_id, build_active_at, ...
  KEYS[2]  {<shard>}:<kind>:<target>:filling  bitmap: the Bloom filter under construction
  KEYS[3]  {<shard>}:<kind>:<target>:bloom    bitmap: the Bloom filter in use
  ARGV[1]  build: the name that begin_bloom got
  ARGV[2]  1 when this page is the last, else 0
  ARGV[3...]  actors that are on in MySQL

  Bounded by: 250 actors a page.

  Returns FILLED, FINISHED, or LOST (the target was dropped, or another build took over)

  Safe to repeat: setting a bit twice changes nothing; after the last page the reply is LOST. ]]
--!include bloom
--!include build
--!include meta
--!include idle
local meta_key, filling, bloom = KEYS[1], KEYS[2], KEYS[3]
local meta = redis.call('HMGET', meta_key, 'filling', 'build_id', 'mode')
if meta[2] ~= ARGV[1] or redis.call('GETBIT', filling, meta[1]) == 0 then return 'LOST' end

local bits, actors = tonumber(meta[1]), {}
for i = 3, #ARGV do actors[i - 2] = ARGV[i] end
bloom_add_all(filling, bits, actors)
if ARGV[2] ~= '1' then
  touch_build(meta_key)
  return 'FILLED'
end

swap_in_build(filling, bloom)
expire_with(meta_key, bloom)
finish_build(meta_key, 'mode', render_mode(parse_mode(meta[3]), bits))
redis.call('HDEL', meta_key, 'filling')
return 'FINISHED'

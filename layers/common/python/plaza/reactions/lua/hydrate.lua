--[[ hydrate: bring a target that isn't in Redis back from what MySQL said.

  KEYS[1]  {<shard>}:<kind>:<target>:meta     hash: total, ver, dbver, dbtotal, complete, bloom, waiting
  KEYS[2]  {<shard>}:<kind>:<target>:recent   zset: actor -> ver
  KEYS[3]  {<shard>}:<kind>:<target>:fence    string: the newest dbver heard while the target was away
  KEYS[4]  {<shard>}:<kind>:<target>:older    bitmap: Bloom filter; a left-over is removed
  KEYS[5]  {<shard>}:<kind>:<target>:filling  bitmap: likewise
  KEYS[6]  {<shard>}:<kind>:<target>:pending  hash: actor -> state:ver:total
  ARGV[1]  total of the counter
  ARGV[2]  dbver: ver of the counter, read in the same snapshot
  ARGV[3]  1 when the actors that follow are all there are, else 0
  ARGV[4]  the newest ver among all rows of the target, also those that are off
  ARGV[5]  ttl of an idle target, milliseconds
  ARGV[6...]  actor, ver, actor, ver, ...: the newest actors, at most cap

  Returns HYDRATED, PRESENT (somebody was faster: theirs stands) or
          FENCED (MySQL has moved on since: read again)

  Safe to repeat: the second time the target is present. ]]
--!include idle
local meta_key, recent = KEYS[1], KEYS[2]
if redis.call('EXISTS', meta_key) == 1 then return 'PRESENT' end
if tonumber(redis.call('GET', KEYS[3]) or 0) > tonumber(ARGV[2]) then return 'FENCED' end

redis.call('DEL', recent, KEYS[4], KEYS[5])
redis.call('HSET', meta_key, 'total', ARGV[1], 'ver', ARGV[4], 'dbver', ARGV[2], 'dbtotal', ARGV[1],
  'complete', ARGV[3], 'bloom', 0, 'waiting', redis.call('HLEN', KEYS[6]))
for i = 6, #ARGV, 500 do
  local pairs_of = {}
  for j = i, math.min(i + 499, #ARGV), 2 do
    pairs_of[#pairs_of + 1], pairs_of[#pairs_of + 2] = ARGV[j + 1], ARGV[j]
  end
  redis.call('ZADD', recent, unpack(pairs_of))
end
if redis.call('EXISTS', KEYS[6]) == 1 then
  -- An outbox without its target: part of Redis was lost. Believe it until it is empty, then read again.
  redis.call('HSET', meta_key, 'stale', 1)
else
  rest(meta_key, recent, KEYS[4], KEYS[5], tonumber(ARGV[5]))
end
return 'HYDRATED'

--[[ find_denied: who of some actors would be taken for off without a look at MySQL.

  KEYS[1]  {<shard>}:<kind>:<target>:meta     hash: total, ver, dbver, complete, bloom, ...
  KEYS[2]  {<shard>}:<kind>:<target>:pending  hash: actor -> state:ver:total
  KEYS[3]  {<shard>}:<kind>:<target>:recent   zset: actor -> ver
  KEYS[4]  {<shard>}:<kind>:<target>:older    bitmap: Bloom filter
  ARGV[1...]  actors, at most a page of them

  Returns {actor, ...}: those who are neither pending nor in recent, and of whom complete or the filter says no

  Safe to repeat: it only reads. ]]
--!include bloom
--!include state
local pending, recent, older = KEYS[2], KEYS[3], KEYS[4]
local meta = read_meta(KEYS[1])
if not meta then return {} end
local denied = {}
for i = 1, #ARGV do
  if redis.call('HEXISTS', pending, ARGV[i]) == 0 and not redis.call('ZSCORE', recent, ARGV[i])
    and state_outside_recent(ARGV[i], meta, older) == '0' then
    denied[#denied + 1] = ARGV[i]
  end
end
return denied

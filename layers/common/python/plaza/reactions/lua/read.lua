--[[ read: the total of a target, and whether one actor reacted to it.

  KEYS[1]  {<shard>}:<kind>:<target>:meta     hash: total, ver, dbver, complete, bloom, ...
  KEYS[2]  {<shard>}:<kind>:<target>:pending  hash: actor -> state:ver:total
  KEYS[3]  {<shard>}:<kind>:<target>:recent   zset: actor -> ver
  KEYS[4]  {<shard>}:<kind>:<target>:older    bitmap: Bloom filter
  KEYS[5]  {<shard>}:<kind>:<target>:filling  bitmap: the Bloom filter that is being built, if any
  ARGV[1]  actor, or '' for nobody
  ARGV[2]  ttl of an idle target, milliseconds

  Returns {total, mine, rebuild}, or false when the target isn't in Redis
    mine     1 on, 0 off or nobody, -1 only MySQL can say
    rebuild  1 when the caller should ask for the Bloom filter to be built

  Safe to repeat: it writes nothing but the time to live, and when a rebuild was asked for. ]]
--!include bloom
--!include state
--!include idle
local meta = read_meta(KEYS[1])
if not meta then return false end
keep_warm(KEYS[1], KEYS[3], KEYS[4], KEYS[5], tonumber(ARGV[2]))
if ARGV[1] == '' then return {meta.total, 0, 0} end
local state = state_of(ARGV[1], meta, KEYS[2], KEYS[3], KEYS[4])
if not state then return {meta.total, -1, ask_rebuild(KEYS[1], meta)} end
return {meta.total, tonumber(state), 0}

--[[ sweep_cell: remove shops from a cell that no build and no change has stored there for long.

  KEYS[1]  {<shard>}:shops:cells           set: the cells of this shard that may have shops
  KEYS[2]  {<shard>}:shops:<cell>:moves    hash: shop -> its last move in this cell
  KEYS[3...]  {<shard>}:shops:<cell>:<set>  zset: shop -> place (GEO); of all shops first, then of each type
  ARGV[1]  cell
  ARGV[2]  moves before this time are removed, microseconds
  ARGV[3]  cursor, 0 to begin
  ARGV[4]  count of HSCAN

  Bounded by: ARGV[4] shops, and those that share a bucket of the hash.

  Returns the next cursor, 0 at the end

  Safe to repeat: what is removed stays removed, unless a later move puts it back. ]]
local page = redis.call('HSCAN', KEYS[2], ARGV[3], 'COUNT', ARGV[4])
local stale = {}
for i = 1, #page[2], 2 do
  if tonumber(page[2][i + 1]) < tonumber(ARGV[2]) then stale[#stale + 1] = page[2][i] end
end
if #stale > 0 then
  redis.call('HDEL', KEYS[2], unpack(stale))
  for k = 3, #KEYS do
    local key = KEYS[k]
    redis.call('ZREM', key, unpack(stale))
  end
end
if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('SREM', KEYS[1], ARGV[1]) end
return page[1]

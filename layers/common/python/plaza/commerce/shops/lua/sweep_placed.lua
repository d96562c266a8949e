--[[ sweep_placed: drop the records of shops that no build and no change has stored for long.

  KEYS[1]  {<shard>}:shops:placed  hash: shop -> <version>;<move>;<cells that may have it, comma-separated>
  ARGV[1]  records with moves before this time are dropped, microseconds
  ARGV[2]  cursor, 0 to begin
  ARGV[3]  count of HSCAN

  Bounded by: ARGV[3] shops, and those that share a bucket of the hash.

  Returns the next cursor, 0 at the end

  Safe to repeat: what is dropped stays dropped, unless a later move stores it again. ]]
local page = redis.call('HSCAN', KEYS[1], ARGV[2], 'COUNT', ARGV[3])
local stale = {}
for i = 1, #page[2], 2 do
  local move = string.match(page[2][i + 1], '^-?%d+;(%d+);')
  if not move or tonumber(move) < tonumber(ARGV[1]) then stale[#stale + 1] = page[2][i] end
end
if #stale > 0 then redis.call('HDEL', KEYS[1], unpack(stale)) end
return page[1]

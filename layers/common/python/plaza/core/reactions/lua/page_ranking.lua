--[[ page_ranking: read a page of a ranking, by likes descending, then by post id descending.

  KEYS[1]  {<shard>}:ranking:<window>       zset: post, in 19 digits -> likes
  KEYS[2]  {<shard>}:ranking:<window>:built_at  string: build time, microseconds; the ranking is incomplete without it
  ARGV[1]  likes of the last post of the previous page, '' for the first page
  ARGV[2]  the last post of the previous page
  ARGV[3]  count: maximum of posts
  ARGV[4]  cap: number of ranks

  Bounded by: ARGV[4] ranks, in pages of 100.

  Returns {post, likes, post, likes, ...}, or false when the ranking is incomplete

  Safe to repeat: it only reads. ]]
if redis.call('EXISTS', KEYS[2]) == 0 then return false end
local rank, count, cap = 0, tonumber(ARGV[3]), tonumber(ARGV[4])
if ARGV[1] ~= '' then rank = redis.call('ZCOUNT', KEYS[1], '(' .. ARGV[1], '+inf') end
local posts = {}
-- Many posts may have as many likes as the last one: skip them, 100 at a time.
while #posts < 2 * count and rank < cap do
  local page = redis.call('ZRANGE', KEYS[1], rank, math.min(rank + 99, cap - 1), 'REV', 'WITHSCORES')
  if #page == 0 then break end
  for i = 1, #page, 2 do
    local is_before = ARGV[1] ~= '' and page[i + 1] == ARGV[1] and page[i] >= ARGV[2]
    if not is_before and #posts < 2 * count then
      posts[#posts + 1] = page[i]
      posts[#posts + 1] = page[i + 1]
    end
  end
  rank = rank + 100
end
return posts

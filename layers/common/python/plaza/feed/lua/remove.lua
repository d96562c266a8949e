--[[ remove: take all posts of an author out of a timeline, and that they are a star.

  KEYS[1]  {<shard>}:user:<id>:<timeline>  zset: <post>:<author> -> created; star:<author> -> 0
  ARGV[1]  author

  Bounded by: 1,250 posts, a quarter above the cap of a timeline.

  Returns how many members that were

  Safe to repeat: what is out is out. ]]
local ending, removed = ':' .. ARGV[1], redis.call('ZREM', KEYS[1], 'star:' .. ARGV[1])
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], '(0', '+inf', 'BYSCORE')) do
  if string.sub(member, -#ending) == ending then
    removed = removed + redis.call('ZREM', KEYS[1], member)
  end
end
return removed

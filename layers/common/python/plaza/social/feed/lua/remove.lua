--[[ remove: remove the posts and the celebrity of an author from a timeline.

  KEYS[1]  {<shard>}:user:<id>:<timeline>  zset: <post>:<author>, celebrity:<author>
  ARGV[1]  author

  Bounded by: 1,250 posts, a quarter above the cap of a timeline.

  Returns the number of members removed

  Safe to repeat: a repeat finds nothing to remove. ]]
local ending, removed = ':' .. ARGV[1], redis.call('ZREM', KEYS[1], 'celebrity:' .. ARGV[1])
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], '(0', '+inf', 'BYSCORE')) do
  if string.sub(member, -#ending) == ending then
    removed = removed + redis.call('ZREM', KEYS[1], member)
  end
end
return removed

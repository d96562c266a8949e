--[[ hydrate: bring the streak and a month of a user back from MySQL, and what is in the outbox with it.

  KEYS[1]  {<shard>}:user:<id>:checkins          hash: last, streak
  KEYS[2]  {<shard>}:user:<id>:checkins:<month>  bitmap: 32 bits, one for each day; the first: it is whole
  KEYS[3]  {<shard>}:user:<id>:checkins:outbox   hash: day -> when it was accepted
  KEYS[4]  {<shard>}:user:<id>:checkins:lease    string: there as long as nothing was acknowledged since MySQL was asked
  ARGV[1]  lease
  ARGV[2]  ttl, seconds
  ARGV[3]  the first day of the month, as a number
  ARGV[4]  how many days it has
  ARGV[5]  the bits of the month in MySQL
  ARGV[6...]  pairs: the first and the last day of a run, newest first

  Bounded by: 40 runs, and 366 days in the outbox: one for each day that MySQL was away.

  Returns 1 done, 0 something was acknowledged meanwhile: read MySQL again

  Safe to repeat: it writes what is true as long as the lease stands. ]]
local head, month = KEYS[1], KEYS[2]
if redis.call('GET', KEYS[4]) ~= ARGV[1] then return 0 end
local first, length = tonumber(ARGV[3]), tonumber(ARGV[4])
local runs, accepted, last = {}, {}, 0
for i = 6, #ARGV, 2 do
  runs[#runs + 1] = {tonumber(ARGV[i]), tonumber(ARGV[i + 1])}
  last = math.max(last, tonumber(ARGV[i + 1]))
end

redis.call('BITFIELD', month, 'SET', 'u32', 0, ARGV[5])
for _, text in ipairs(redis.call('HKEYS', KEYS[3])) do
  local day = tonumber(text)
  accepted[day] = true
  last = math.max(last, day)
  if day >= first and day < first + length then redis.call('SETBIT', month, day - first + 1, 1) end
end

-- Back from the newest day, over runs and what is accepted, up to the first day that is in neither.
local day, at = last, 1
while day > 0 do
  while runs[at] and runs[at][1] > day do at = at + 1 end
  if runs[at] and runs[at][2] >= day then
    day = runs[at][1] - 1
  elseif accepted[day] then
    day = day - 1
  else
    break
  end
end

redis.call('HSET', head, 'last', last, 'streak', last - day)
redis.call('EXPIRE', head, ARGV[2])
redis.call('EXPIRE', month, ARGV[2])
return 1

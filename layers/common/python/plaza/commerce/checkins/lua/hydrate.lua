--[[ hydrate: store the streak and a month of a user, from MySQL and the outbox.

  KEYS[1]  {<shard>}:user:<id>:checkins          hash: last, streak, term, <month> -> 1
  KEYS[2]  {<shard>}:user:<id>:checkins:<month>  bitmap: bit d is day d; bit 0 marks a complete month
  KEYS[3]  {<shard>}:user:<id>:checkins:outbox   hash: day -> when it was accepted
  KEYS[4]  {<shard>}:user:<id>:checkins:lease    string: exists while nothing was acknowledged since it was acquired
  ARGV[1]  lease
  ARGV[2]  ttl, seconds
  ARGV[3]  first day of the month (date.toordinal)
  ARGV[4]  number of days in the month
  ARGV[5]  bits of the month in MySQL
  ARGV[6]  term of the node that gave the lease
  ARGV[7...]  pairs: first and last day of a range, newest first

  Bounded by: 40 ranges, and 366 days in the outbox, one for each day of an outage of MySQL.

  Returns 1 stored, 0 a day was acknowledged since: read MySQL again

  Safe to repeat: the values are current as long as the lease exists. ]]
local head, month = KEYS[1], KEYS[2]
if redis.call('GET', KEYS[4]) ~= ARGV[1] then return 0 end
local first, length = tonumber(ARGV[3]), tonumber(ARGV[4])
local ranges, accepted, last = {}, {}, 0
for i = 7, #ARGV, 2 do
  ranges[#ranges + 1] = {tonumber(ARGV[i]), tonumber(ARGV[i + 1])}
  last = math.max(last, tonumber(ARGV[i + 1]))
end

redis.call('BITFIELD', month, 'SET', 'u32', 0, ARGV[5])
for _, text in ipairs(redis.call('HKEYS', KEYS[3])) do
  local day = tonumber(text)
  accepted[day] = true
  last = math.max(last, day)
  if day >= first and day < first + length then redis.call('SETBIT', month, day - first + 1, 1) end
end

-- Walk back from the newest day to the first day that is neither in a range nor in the outbox.
local day, index = last, 1
while day > 0 do
  while ranges[index] and ranges[index][1] > day do index = index + 1 end
  if ranges[index] and ranges[index][2] >= day then
    day = ranges[index][1] - 1
  elseif accepted[day] then
    day = day - 1
  else
    break
  end
end

if redis.call('HGET', head, 'term') ~= ARGV[6] then redis.call('UNLINK', head) end
redis.call('HSET', head, 'last', last, 'streak', last - day, 'term', ARGV[6], string.sub(month, -7), 1)
redis.call('EXPIRE', head, ARGV[2])
redis.call('EXPIRE', month, ARGV[2])
return 1

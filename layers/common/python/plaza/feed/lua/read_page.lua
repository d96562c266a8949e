--[[ read_page: a page of a timeline, newest first; and is it time to have it rebuilt?

  KEYS[1]  {<shard>}:user:<id>:<timeline>  zset: <post>:<author> -> created; star:<author> -> 0; and minus a time: floor, building, built, requested
  ARGV[1]  the time to begin with, microseconds since 1970, or +inf
  ARGV[2]  the post to begin after, among those of that time: 19 digits, or nothing for all of them
  ARGV[3]  count: the most posts
  ARGV[4]  ttl of a timeline that was read, milliseconds
  ARGV[5]  ttl of one that is not built yet, milliseconds
  ARGV[6]  how long after one asked for a rebuild another may, microseconds
  ARGV[7]  how old it may grow before it is rebuilt, microseconds

  Bounded by: ARGV[3] posts, those of one microsecond, and the 5,000 stars that one user may follow.

  Returns {floor, rebuild_due, {star:<author>, ...}, {member, score, member, score, ...}}
    floor  the time above which it is whole, 0 when it isn't built
    rebuild_due  1 when the caller is the one to ask for a rebuild

  Safe to repeat: it only notes that it was read, and when it told somebody to ask. ]]
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local meta = redis.call('ZMSCORE', KEYS[1], 'floor', 'built', 'requested')
local floor, built, requested = meta[1], meta[2], meta[3]
local rebuild_due = 0
if not floor then
  -- From here on it is pushed to: what is posted while it is being read from MySQL comes that way.
  redis.call('ZADD', KEYS[1], -1, 'floor', -now_us, 'building')
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
end
if not built or now_us + built > tonumber(ARGV[7]) then
  if not requested or now_us + requested > tonumber(ARGV[6]) then
    redis.call('ZADD', KEYS[1], -now_us, 'requested')
    rebuild_due = 1
  end
end
if not built then return {0, rebuild_due, {}, {}} end
redis.call('PEXPIRE', KEYS[1], ARGV[4])

local count, found, from = tonumber(ARGV[3]), {}, ARGV[1]
local above = string.sub(floor, 2) -- as it was written: no digit is lost
if ARGV[2] ~= '' then
  if tonumber(from) > tonumber(above) then
    local ties = redis.call('ZRANGE', KEYS[1], from, from, 'BYSCORE', 'REV')
    for i = 1, #ties do
      if ties[i] < ARGV[2] and #found < 2 * count then
        found[#found + 1] = ties[i]
        found[#found + 1] = from
      end
    end
  end
  from = '(' .. from
end
local rest = redis.call('ZRANGE', KEYS[1], from, '(' .. above, 'BYSCORE', 'REV', 'LIMIT', 0, count, 'WITHSCORES')
for i = 1, math.min(#rest, 2 * count - #found) do found[#found + 1] = rest[i] end
return {tonumber(above), rebuild_due, redis.call('ZRANGE', KEYS[1], 0, 0, 'BYSCORE'), found}

--[[ read_page: return a page of a timeline, newest first, and whether a rebuild is due.

  KEYS[1]  {<shard>}:user:<id>:<timeline>  zset: <post>:<author>, celebrity:<author>, floor, building, built, requested
  ARGV[1]  time of the first post, microseconds since 1970, or +inf
  ARGV[2]  post after which the page begins, among the posts of that time: 19 digits; '' for all of them
  ARGV[3]  count: maximum number of posts
  ARGV[4]  ttl of a timeline that was read, milliseconds
  ARGV[5]  ttl of a timeline that is not built, milliseconds
  ARGV[6]  minimum time between two requests for a rebuild, microseconds
  ARGV[7]  age at which a rebuild is due, microseconds

  Bounded by: ARGV[3] posts, the posts of one microsecond, and the 5,000 celebrities that one user may follow.

  Returns {floor, rebuild_due, {celebrity:<author>, ...}, {member, score, member, score, ...}}
    floor  the time above which the timeline is complete; 0 if it is not built
    rebuild_due  1 if the caller must request a rebuild

  Safe to repeat: it only stores the ttl and the time of the request. ]]
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local meta = redis.call('ZMSCORE', KEYS[1], 'floor', 'built', 'requested')
local floor, built, requested = meta[1], meta[2], meta[3]
local rebuild_due = 0
if not floor then
  -- The timeline accepts pushes from here on, so that posts made during the build are not lost.
  redis.call('ZADD', KEYS[1], -1, 'floor', -now_us, 'building')
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
end
if not built or math.abs(now_us + built) > tonumber(ARGV[7]) then -- a clock may have gone back
  if not requested or math.abs(now_us + requested) > tonumber(ARGV[6]) then
    redis.call('ZADD', KEYS[1], -now_us, 'requested')
    rebuild_due = 1
  end
end
if not built then return {0, rebuild_due, {}, {}} end
redis.call('PEXPIRE', KEYS[1], ARGV[4])

local count, entries, from = tonumber(ARGV[3]), {}, ARGV[1]
local above = string.sub(floor, 2) -- the string: a number would lose digits
if ARGV[2] ~= '' then
  if tonumber(from) > tonumber(above) then
    local ties = redis.call('ZRANGE', KEYS[1], from, from, 'BYSCORE', 'REV')
    for i = 1, #ties do
      if ties[i] < ARGV[2] and #entries < 2 * count then
        entries[#entries + 1] = ties[i]
        entries[#entries + 1] = from
      end
    end
  end
  from = '(' .. from
end
local rest = redis.call('ZRANGE', KEYS[1], from, '(' .. above, 'BYSCORE', 'REV', 'LIMIT', 0, count, 'WITHSCORES')
for i = 1, math.min(#rest, 2 * count - #entries) do entries[#entries + 1] = rest[i] end
return {tonumber(above), rebuild_due, redis.call('ZRANGE', KEYS[1], 0, 0, 'BYSCORE'), entries}

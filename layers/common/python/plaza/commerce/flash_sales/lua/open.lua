--[[ open: advance the cursor of a generation, or make it live once it is loaded and drained.

  KEYS[1]  {<shard>}:voucher:<id>:sale  hash: generation, phase, drain_until_us, cursor, term, ...
  ARGV[1]  generation
  ARGV[2]  cursor: a digit and 19 more. 0 and an order: the cancelled orders up to it are loaded; 1 and a buyer: all
           of them, and the successes of buyers up to it; 2 and a seq: all of both, and the waitlist up to it;
           '': everything is loaded
  ARGV[3]  1: the queue has no older orders; 0: it may have some, so the drain must end first
  ARGV[4]  the term under which the waitlist was read; '': it was not

  Returns LIVE; LOADING; DRAINING; WITHDRAWN, the voucher is;
    STALE_GENERATION, another generation has begun

  Safe to repeat: a live generation stays live, and the cursor never moves back. ]]
local MAX_DRAIN_US = 30000000
local fields = redis.call('HMGET', KEYS[1], 'generation', 'phase', 'drain_until_us', 'cursor')
if fields[1] ~= ARGV[1] then return 'STALE_GENERATION' end
if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], 'term', ARGV[4]) end
if fields[2] == 'live' then return 'LIVE' end
if fields[2] == 'withdrawn' then return 'WITHDRAWN' end
if ARGV[2] ~= '' then
  -- Compared as text of one length: an id can exceed the 53 bits of a Lua number.
  if fields[2] == 'loading' and ARGV[2] > fields[4] then redis.call('HSET', KEYS[1], 'cursor', ARGV[2]) end
  return 'LOADING'
end
local now = redis.call('TIME')
local now_us = now[1] * 1000000 + now[2]
if ARGV[3] == '1' or now_us >= tonumber(fields[3]) then
  redis.call('HSET', KEYS[1], 'phase', 'live')
  return 'LIVE'
end
-- A clock that went back does not keep the sale draining.
local ends_us = math.min(tonumber(fields[3]), now_us + MAX_DRAIN_US)
redis.call('HSET', KEYS[1], 'phase', 'draining', 'drain_until_us', string.format('%.0f', ends_us))
return 'DRAINING'

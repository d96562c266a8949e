-- counts: what changes with each order, in one field of the state: <stock>:<pending>:<offered>:<waiting>:<full_us>.
local function parse_counts(counts)
  local stock, pending, offered, waiting, full_us =
    string.match(counts, '^(%-?%d+):(%-?%d+):(%-?%d+):(%-?%d+):(%d+)$')
  return tonumber(stock), tonumber(pending), tonumber(offered), tonumber(waiting), tonumber(full_us)
end

local function format_counts(stock, pending, offered, waiting, full_us)
  return string.format('%d:%d:%d:%d:%d', stock, pending, offered, waiting, full_us)
end

-- Adds to the counts of a state; full_us stays.
local function add_to_counts(state, more_stock, more_pending, more_offered, more_waiting)
  local stock, pending, offered, waiting, full_us = parse_counts(redis.call('HGET', state, 'counts'))
  redis.call('HSET', state, 'counts', format_counts(stock + more_stock, pending + more_pending,
    offered + more_offered, waiting + more_waiting, full_us))
end

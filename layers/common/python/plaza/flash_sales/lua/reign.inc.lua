-- reign: the reign of this node, as infra/redis/reigns.py reads it. Each promotion and each restart makes a new one.
local function read_reign()
  return string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')
    or string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or ''
end

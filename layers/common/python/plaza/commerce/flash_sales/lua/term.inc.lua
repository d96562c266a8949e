-- term: the term of this node, as infra/redis/terms.py reads it. Each promotion and each restart makes a new one.
local function read_term()
  return string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')
    or string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or ''
end

--[[ record_heads: store the heads of the reaction log with the data, unless another node serves it.

  KEYS[1]  {<shard>}:log_checks  hash: before, last
  ARGV[1]  before: head of the log at the check before this one
  ARGV[2]  last: head of the log at this check
  ARGV[3]  term that was checked
  ARGV[4]  term of this node: a lost connection is replaced while the command is sent

  Returns 1 stored, 0 this node is not the one that was checked

  Safe to repeat: it stores the same heads. ]]
if ARGV[3] ~= ARGV[4] then return 0 end
redis.call('HSET', KEYS[1], 'before', ARGV[1], 'last', ARGV[2])
return 1

--[[ confirm_sweep: store the progress of a sweep, after the entries that it found were sent.

  KEYS[1]  {<shard>}:<outbox>:sweep  string: progress of the sweeps of this outbox
  KEYS[2]  {<shard>}:<index>         zset: member -> when the oldest entry of its outbox was accepted
  ARGV[1]  member: the outbox in the index
  ARGV[2]  progress that the sweep read, '' for none
  ARGV[3]  progress after the sweep
  ARGV[4]  when the oldest entry was accepted, microseconds since 1970; '' before the end of a scan
  ARGV[5]  TTL of the progress, seconds

  Returns 1 stored, 0 another sweep of this outbox was faster

  Safe to repeat: the second time the progress is not the one that the sweep read. ]]
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[3], 'EX', ARGV[5])
if ARGV[4] ~= '' then redis.call('ZADD', KEYS[2], 'XX', ARGV[4], ARGV[1]) end
return 1

--[[ rebase: compare a page of outbox entries with the rows of their actors, while the target is loaded.

  KEYS[1]  {<shard>}:<kind>:<target>:outbox   hash: actor -> want:version:base:nonce
  KEYS[2]  {<shard>}:<kind>:<target>:lease    string: token of the caller that loads the target
  KEYS[3]  {<shard>}:<kind>:<target>:loading  hash: token, page, delta, outbox_count, version: sums of the pages so far
  ARGV[1]  token of the caller's lease
  ARGV[2]  page: number of the page, from 1
  ARGV[3]  new TTL of the lease, milliseconds
  ARGV[4]  rows: "actor version state;...", 0 and 0 for an actor without a row, at most 250

  Bounded by: 250 rows.

  Returns DONE, or STALE (the lease is lost: take another one)

  Safe to repeat: a page is added once. ]]
local outbox, lease, loading = KEYS[1], KEYS[2], KEYS[3]
if redis.call('GET', lease) ~= ARGV[1] then return 'STALE' end
redis.call('PEXPIRE', lease, ARGV[3])
local l = redis.call('HMGET', loading, 'token', 'page', 'delta', 'outbox_count', 'version')
if l[1] ~= ARGV[1] then
  redis.call('UNLINK', loading)
  l = {ARGV[1], 0, 0, 0, 0}
end
local page = tonumber(ARGV[2])
if tonumber(l[2]) == page then return 'DONE' end
if tonumber(l[2]) ~= page - 1 then return 'STALE' end

local delta, outbox_count, newest = tonumber(l[3]), tonumber(l[4]), tonumber(l[5])
local actors, versions, states = {}, {}, {}
for actor, version, state in string.gmatch(ARGV[4], '(%d+) (%d+) (%d)') do
  local i = #actors + 1
  actors[i], versions[i], states[i] = actor, version, state
end
local entries, confirmed, moved = {}, {}, {}
if #actors > 0 then entries = redis.call('HMGET', outbox, unpack(actors)) end
for i, entry in ipairs(entries) do
  if entry then
    local want, entry_version, at, base = string.match(entry, '^(%d):(%d+):()(%d)')
    local state = states[i]
    if tonumber(versions[i]) >= tonumber(entry_version) then
      confirmed[#confirmed + 1] = actors[i]
    else
      if base ~= state then
        moved[#moved + 1] = actors[i]
        moved[#moved + 1] = string.sub(entry, 1, at - 1) .. state .. string.sub(entry, at + 1)
      end
      delta, outbox_count = delta + (want - state), outbox_count + 1
      newest = math.max(newest, tonumber(entry_version))
    end
  end
end
if #confirmed > 0 then redis.call('HDEL', outbox, unpack(confirmed)) end
if #moved > 0 then redis.call('HSET', outbox, unpack(moved)) end
redis.call('HSET', loading, 'token', ARGV[1], 'page', page, 'delta', delta, 'outbox_count', outbox_count,
  'version', string.format('%.0f', newest))
redis.call('PEXPIRE', loading, ARGV[3])
return 'DONE'

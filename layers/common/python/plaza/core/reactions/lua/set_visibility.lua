--[[ set_visibility: mark a loaded target as hidden or visible, so that the gate refuses or takes new reactions to it.

  KEYS[1]  {<shard>}:<kind>:<target>:meta  hash: mode, visibility, author, ...
  ARGV[1]  version of the text that was hidden or shown
  ARGV[2]  its author, who may still react to it; '' if the text is visible

  Returns 1 marked, 0 not loaded (the caller that loads it marks it) or marked by this version or a newer one

  Safe to repeat: of two versions the newer stays, in any order. Deletion is final. ]]
local m = redis.call('HMGET', KEYS[1], 'mode', 'visibility')
if not m[1] or tonumber(m[2] or 0) >= tonumber(ARGV[1]) then return 0 end
local mode
if ARGV[2] == '' then
  mode = string.gsub(m[1], ':hidden:', ':live:')
else
  mode = string.gsub(m[1], ':live:', ':hidden:')
end
redis.call('HSET', KEYS[1], 'mode', mode, 'visibility', ARGV[1], 'author', ARGV[2])
return 1

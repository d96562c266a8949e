-- earliest: the first page of the earliest saved actors, which most commits leave as it is.
local EARLIEST_LENGTH = 101

-- Looks at the rows of each commit, and drops the page when an actor of it left or moved, or another comes before its
-- end, which is last. The page is good as long as meta has the field.
local function watch_earliest(meta, meta_key, earliest, last)
  return function(actors, versions, states)
    local listed, changed = {}, false
    -- All at once: a zset this small is a list, which is searched from its beginning for each member.
    for _, actor in ipairs(redis.call('ZRANGE', earliest, 0, EARLIEST_LENGTH - 1)) do listed[actor] = true end
    for i, actor in ipairs(actors) do
      changed = changed or listed[actor] or states[i] ~= '0' and tonumber(versions[i]) <= last
    end
    if not changed then return end
    redis.call('UNLINK', earliest)
    redis.call('HDEL', meta_key, 'earliest')
    meta.on_rows = nil
  end
end

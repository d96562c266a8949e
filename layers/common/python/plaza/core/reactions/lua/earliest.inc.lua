-- earliest: the cached first page of the earliest saved actors, which most commits do not change.
local EARLIEST_LENGTH = 101

-- Returns a function that drops the page when rows of a commit change one of its actors, or add one up to its last
-- version. The page is valid while meta has the field earliest.
local function watch_earliest(meta, meta_key, earliest, last)
  return function(actors, versions, states)
    local listed, changed = {}, false
    -- One ZRANGE: a zset this small is a list, and a ZSCORE of each actor would search it from its beginning.
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

-- recent: the newest actors by name; whoever falls out goes into the Bloom filters. Needs bloom.

-- Into the filter in use, and into the one that is being built.
local function remember_older(meta, older, filling, actor)
  if meta.bloom > 0 then bloom_add(older, meta.bloom, actor) end
  if meta.filling > 0 then bloom_add(filling, meta.filling, actor) end
end

-- True when somebody had to leave. At most two a call: more only after the cap was lowered.
local function keep_newest(cap, meta, meta_key, recent, older, filling)
  local over = redis.call('ZCARD', recent) - cap
  if over <= 0 then return false end
  local out = redis.call('ZPOPMIN', recent, math.min(over, 2))
  if meta.complete then
    meta.complete, meta.bloom = false, BLOOM_FIRST_BITS
    redis.call('HSET', meta_key, 'complete', 0, 'bloom', meta.bloom)
  end
  for i = 1, #out, 2 do remember_older(meta, older, filling, out[i]) end
  return true
end

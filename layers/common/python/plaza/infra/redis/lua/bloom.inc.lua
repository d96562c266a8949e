-- bloom: a Bloom filter in a bitmap. It may report a false yes, never a false no.
-- The bit after the last one is the seal: a filter without it lost its key and must not be used.
local BLOOM_FIRST_BITS = 131072 -- 16 KiB, for 8,192 actors
local BLOOM_MAX_BITS = 8388608 -- 1 MiB
local BLOOM_BITS_PER_ACTOR = 16 -- false positives: 1 in 400 (4 hashes)

-- Two halves of one SHA-1 make all four offsets (Kirsch and Mitzenmacher, 2006). They are strings: Redis takes twice
-- the time for a number as an argument. Locals save the lookup of a global.
local sha1hex, sub, format, number = redis.sha1hex, string.sub, string.format, tonumber
local function bloom_halves(actor)
  local digest = sha1hex(actor)
  return number(sub(digest, 1, 8), 16), number(sub(digest, 9, 16), 16)
end

local function bloom_offsets(bits, actor)
  local a, b = bloom_halves(actor)
  return format('%d', a % bits), format('%d', (a + b) % bits), format('%d', (a + 2 * b) % bits),
    format('%d', (a + 3 * b) % bits)
end

local function bloom_add(key, bits, actor)
  local p, q, r, s = bloom_offsets(bits, actor)
  redis.call('BITFIELD', key, 'SET', 'u1', p, '1', 'SET', 'u1', q, '1', 'SET', 'u1', r, '1', 'SET', 'u1', s, '1')
end

local function bloom_has(key, bits, actor)
  local a, b = bloom_halves(actor)
  for i = 0, 3 do -- for most non-members the first bit is 0
    if redis.call('GETBIT', key, format('%d', (a + i * b) % bits)) == 0 then return false end
  end
  return true
end

-- Adds many actors with few commands.
local function bloom_add_all(key, bits, actors)
  for first = 1, #actors, 250 do
    local sets, n = {}, 0
    for i = first, math.min(first + 249, #actors) do
      local p, q, r, s = bloom_offsets(bits, actors[i])
      sets[n + 1], sets[n + 2], sets[n + 3], sets[n + 4] = 'SET', 'u1', p, '1'
      sets[n + 5], sets[n + 6], sets[n + 7], sets[n + 8] = 'SET', 'u1', q, '1'
      sets[n + 9], sets[n + 10], sets[n + 11], sets[n + 12] = 'SET', 'u1', r, '1'
      sets[n + 13], sets[n + 14], sets[n + 15], sets[n + 16] = 'SET', 'u1', s, '1'
      n = n + 16
    end
    redis.call('BITFIELD', key, unpack(sets))
  end
end

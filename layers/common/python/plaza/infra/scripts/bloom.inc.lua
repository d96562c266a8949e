-- bloom: a Bloom filter in a bitmap. It may say yes to a stranger, it never says no to a member.
-- One bit behind the last is the seal: a filter without it lost its beginning and must not be believed.
local BLOOM_FIRST_BITS = 131072 -- 16 KiB, good for 8,192 actors
local BLOOM_MOST_BITS = 8388608 -- 1 MiB
local BLOOM_BITS_PER_ACTOR = 16 -- with four hashes, 1 in 400 strangers passes

-- Two halves of one SHA-1 make all four positions (Kirsch and Mitzenmacher, 2006).
local function bloom_positions(bits, actor)
  local digest = redis.sha1hex(actor)
  local a, b = tonumber(string.sub(digest, 1, 8), 16), tonumber(string.sub(digest, 9, 16), 16)
  return a % bits, (a + b) % bits, (a + 2 * b) % bits, (a + 3 * b) % bits
end

local function bloom_add(key, bits, actor)
  local p, q, r, s = bloom_positions(bits, actor)
  redis.call('BITFIELD', key, 'SET', 'u1', p, 1, 'SET', 'u1', q, 1, 'SET', 'u1', r, 1, 'SET', 'u1', s, 1)
end

local function bloom_has(key, bits, actor)
  local p, q, r, s = bloom_positions(bits, actor)
  return redis.call('GETBIT', key, p) == 1 and redis.call('GETBIT', key, q) == 1
    and redis.call('GETBIT', key, r) == 1 and redis.call('GETBIT', key, s) == 1
end

-- Adds many actors with few commands.
local function bloom_add_all(key, bits, actors)
  for first = 1, #actors, 250 do
    local sets = {}
    for i = first, math.min(first + 249, #actors) do
      for _, position in ipairs({bloom_positions(bits, actors[i])}) do
        local n = #sets
        sets[n + 1], sets[n + 2], sets[n + 3], sets[n + 4] = 'SET', 'u1', position, '1'
      end
    end
    redis.call('BITFIELD', key, unpack(sets))
  end
end

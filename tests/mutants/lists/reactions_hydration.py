"""Mutants of the scripts that load and drop targets."""

from __future__ import annotations

from tests.mutants.mutant import mutants_of

HYDRATE = "tests/integration/reactions/test_hydrate.py"
APPLY = "tests/integration/reactions/test_apply.py"
GATE = "tests/integration/reactions/test_gate.py"
MODERATION = "tests/integration/moderation/test_moderation.py"
TOMBSTONE = "tests/integration/reactions/test_tombstone.py"
BLOOM = "tests/integration/reactions/test_bloom.py"

MUTANTS = [
    *mutants_of(
        "reactions/lua/hydrate.lua",
        [HYDRATE, GATE, TOMBSTONE],
        (
            "present",
            "if read_meta(meta_key, ARGV[1]) then return 'PRESENT' end",
            "",
            "A target that is loaded is left unchanged.",
        ),
        (
            "lease",
            "if redis.call('GET', lease) ~= ARGV[2] then return 'STALE' end",
            "",
            "Only the owner of the lease loads a target.",
        ),
        (
            "fence",
            "if tonumber(redis.call('GET', fence) or 0) > db_version then return 'STALE' end",
            "",
            "A snapshot older than a reported commit is refused.",
        ),
        (
            "fence-inclusive",
            "(redis.call('GET', fence) or 0) > db_version",
            "(redis.call('GET', fence) or 0) >= db_version",
            "A snapshot as new as the reported commit is accepted.",
        ),
        (
            "incomplete",
            "if redis.call('HLEN', outbox) ~= tonumber(l[3]) then return 'INCOMPLETE' end",
            "",
            "All entries of the outbox are compared with their rows.",
        ),
        (
            "foreign-sums",
            "if l[1] ~= ARGV[2] then l = {ARGV[2], 0, 0, 0} end",
            "if not l[1] then l = {ARGV[2], 0, 0, 0} end",
            "Sums of another lease do not count.",
            "A caller whose lease has entries runs rebase, which replaces them; without entries the"
            " counts differ: INCOMPLETE, and the caller reads again.",
        ),
        (
            "row-requests-stay",
            "redis.call('UNLINK', meta_key, recent, bloom, filling, row_requests)",
            "redis.call('UNLINK', meta_key, recent, bloom, filling)",
            "A state that was requested before a hydration is not valid after it.",
        ),
        (
            "old-filters-stay",
            "redis.call('UNLINK', meta_key, recent, bloom, filling, row_requests)",
            "redis.call('UNLINK', meta_key, recent, row_requests)",
            "A hydration deletes the remaining filters of an expired target.",
        ),
        (
            "old-recent-stays",
            "redis.call('UNLINK', meta_key, recent, bloom, filling, row_requests)",
            "redis.call('UNLINK', meta_key, bloom, filling, row_requests)",
            "A hydration deletes the remaining actors of an expired target.",
        ),
        (
            "floor-of-newest",
            "(floor == 0 or tonumber(ARGV[j + 1]) < floor)",
            "floor == 0",
            "The floor is the version of the oldest actor in recent.",
        ),
        (
            "version-of-rows-only",
            "version = math.max(tonumber(ARGV[6]), tonumber(l[4]))",
            "version = tonumber(ARGV[6])",
            "Later versions of the gate are above the outbox's.",
        ),
        (
            "version-of-outbox-only",
            "version = math.max(tonumber(ARGV[6]), tonumber(l[4]))",
            "version = tonumber(l[4])",
            "Later versions of the gate are above the versions of all rows, also of rows that are off.",
        ),
        (
            "delta-lost",
            "delta = tonumber(l[2]),",
            "delta = 0,",
            "The outbox stays on top of the snapshot.",
        ),
        (
            "deleted-is-live",
            "status = redis.call('GET', existence) == 'deleted' and 'deleted' or 'live',",
            "status = 'live',",
            "A target that was deleted while it was loaded refuses reactions.",
        ),
        (
            "old-ahead-stays",
            "if tonumber(n) <= db_version then redis.call('HDEL', ahead, n) end",
            "",
            "Commits ahead that the snapshot includes are dropped.",
        ),
        (
            "ahead-of-snapshot-stays",
            "if tonumber(n) <= db_version then",
            "if tonumber(n) < db_version then",
            "The commit of the snapshot's version is dropped from ahead.",
        ),
        (
            "ahead-expires",
            "redis.call('PERSIST', ahead)",
            "",
            "Commits ahead of a loaded target do not expire.",
        ),
        (
            "not-blocked",
            "redis.call('HSET', meta_key, 'blocked', meta.blocked)",
            "",
            "A target that is loaded with commits ahead is blocked.",
        ),
        (
            "not-indexed",
            "if meta.outbox_count > 0 or meta.blocked then"
            " redis.call('ZADD', index, 'NX', time[1] * 1000000 + time[2], ARGV[7]) end",
            "",
            "A target that is loaded with outbox entries is in the index.",
        ),
        (
            "stays-indexed",
            "then redis.call('ZREM', index, ARGV[7]) end",
            "then end",
            "A target that is loaded without entries leaves the index.",
        ),
        (
            "coverage-not-stored",
            "write_coverage(meta, meta_key)\nlocal",
            "local",
            "The mode and the floor are stored.",
        ),
        (
            "ttl-in-seconds",
            "time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[8])",
            "time[1] * 1000 + math.floor(time[2] / 1000)",
            "A loaded target without readers stays for its TTL.",
        ),
    ),
    *mutants_of(
        "reactions/lua/rebase.lua",
        [HYDRATE],
        (
            "lease",
            "if redis.call('GET', lease) ~= ARGV[1] then return 'STALE' end",
            "",
            "Only the owner of the lease compares the outbox.",
        ),
        (
            "lease-not-renewed",
            "redis.call('PEXPIRE', lease, ARGV[3])",
            "",
            "Each page renews the lease.",
        ),
        (
            "foreign-sums",
            "if l[1] ~= ARGV[1] then",
            "if not l[1] then",
            "Sums of another lease do not count.",
        ),
        (
            "page-twice",
            "if tonumber(l[2]) == page then return 'DONE' end\n"
            "if tonumber(l[2]) ~= page - 1 then return 'STALE' end",
            "if tonumber(l[2]) < page - 1 then return 'STALE' end",
            "A repeated page is counted once.",
        ),
        (
            "repeat-is-stale",
            "if tonumber(l[2]) == page then return 'DONE' end",
            "",
            "A repeated page is DONE.",
        ),
        (
            "page-skipped",
            "if tonumber(l[2]) ~= page - 1 then return 'STALE' end",
            "",
            "A page out of order is refused.",
        ),
        (
            "confirms-newer-only",
            "if tonumber(versions[i]) >= tonumber(entry_version) then",
            "if tonumber(versions[i]) > tonumber(entry_version) then",
            "The row of an entry confirms it.",
        ),
        (
            "confirms-by-text",
            "if tonumber(versions[i]) >= tonumber(entry_version) then",
            "if versions[i] >= entry_version then",
            "Versions are compared as numbers: old reactions have shorter ones.",
        ),
        (
            "base-not-moved",
            "if base ~= state then",
            "if false then",
            "The base of an entry is the state of its row.",
        ),
        (
            "delta-of-base",
            "delta, outbox_count = delta + (want - state), outbox_count + 1",
            "delta, outbox_count = delta + (want - base), outbox_count + 1",
            "The delta counts from the state of the row.",
        ),
        (
            "newest-lost",
            "newest = math.max(newest, tonumber(entry_version))",
            "",
            "The newest version of the outbox is reported.",
        ),
        (
            "confirmed-stays",
            "if #confirmed > 0 then redis.call('HDEL', outbox, unpack(confirmed)) end",
            "",
            "A confirmed entry leaves the outbox.",
        ),
        (
            "no-ttl",
            "redis.call('PEXPIRE', loading, ARGV[3])",
            "",
            "The sums of a hydration that never ends expire.",
        ),
    ),
    *mutants_of(
        "reactions/lua/evict.lua",
        [APPLY, HYDRATE],
        (
            "moved",
            "if ARGV[1] ~= '' and db_version ~= ARGV[1] then return 'MOVED' end",
            "",
            "A target that has moved on is not dropped.",
        ),
        (
            "no-fence",
            "redis.call('SET', KEYS[6], db_version, 'EX', ARGV[2])",
            "",
            "A dropped target leaves its version as a fence.",
        ),
        (
            "fence-no-ttl",
            "redis.call('SET', KEYS[6], db_version, 'EX', ARGV[2])",
            "redis.call('SET', KEYS[6], db_version)",
            "A fence expires.",
        ),
        (
            "fence-lowered",
            "if db_version and tonumber(db_version) > tonumber(redis.call('GET', KEYS[6]) or 0) then",
            "if db_version then",
            "A fence never falls.",
        ),
        (
            "lease-stays",
            "KEYS[5], KEYS[7], KEYS[8], KEYS[9])",
            "KEYS[5], KEYS[8], KEYS[9])",
            "A caller that loads the target meanwhile loses its lease.",
        ),
        (
            "recent-stays",
            "redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3]",
            "redis.call('UNLINK', KEYS[1], KEYS[3]",
            "A dropped target leaves nothing but its outbox and its fence.",
        ),
    ),
    *mutants_of(
        "reactions/lua/lease_hydration.lua",
        [HYDRATE],
        (
            "other-reign-is-present",
            "if m[1] and m[2] == ARGV[1] then return",
            "if m[1] then return",
            "A target of another reign is loaded again.",
        ),
        (
            "meta-stays",
            "  redis.call('UNLINK', KEYS[1])\n",
            "",
            "A target of another reign is not read while it is loaded again: it lacks what rebase"
            " removes.",
        ),
        (
            "repeat-is-busy",
            " or redis.call('GET', KEYS[3]) == ARGV[2] then",
            " then",
            "A repeated command gets the lease that it took.",
        ),
        (
            "no-ttl",
            "'NX', 'PX', ARGV[3])",
            "'NX')",
            "The lease of a caller that ended expires.",
        ),
        (
            "taken-twice",
            "redis.call('SET', KEYS[3], ARGV[2], 'NX', 'PX', ARGV[3])",
            "redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[3])",
            "One caller has the lease.",
        ),
    ),
    *mutants_of(
        "reactions/lua/tombstone.lua",
        [TOMBSTONE],
        (
            "not-stored",
            "redis.call('HSET', KEYS[1], 'mode', (string.gsub(mode, ':%a+:', ':deleted:', 1)))",
            "",
            "A deleted target refuses reactions.",
        ),
    ),
    *mutants_of(
        "reactions/lua/set_visibility.lua",
        [TOMBSTONE, MODERATION],
        (
            "older",
            "if not m[1] or tonumber(m[2] or 0) >= tonumber(ARGV[1]) then return 0 end",
            "if not m[1] then return 0 end",
            "An older version does not change the visibility.",
        ),
        (
            "hidden-is-live",
            "mode = string.gsub(m[1], ':live:', ':hidden:')",
            "mode = m[1]",
            "A hidden target refuses reactions.",
        ),
        (
            "shown-is-hidden",
            "mode = string.gsub(m[1], ':hidden:', ':live:')",
            "mode = m[1]",
            "A target that is visible again takes reactions.",
        ),
        (
            "shown-is-not-deleted",
            "mode = string.gsub(m[1], ':hidden:', ':live:')",
            "mode = string.gsub(m[1], ':%a+:', ':live:', 1)",
            "Deletion is final.",
        ),
    ),
    *mutants_of(
        "reactions/lua/begin_bloom.lua",
        [BLOOM, GATE],
        (
            "complete",
            "if meta.complete then return 'COMPLETE' end",
            "",
            "A complete target gets no filter.",
        ),
        (
            "size",
            "while bits < tonumber(ARGV[3]) * BLOOM_BITS_PER_ACTOR and",
            "while bits < tonumber(ARGV[3]) and",
            "A filter is sized for its actors.",
        ),
        (
            "size-unbounded",
            "* BLOOM_BITS_PER_ACTOR and bits < BLOOM_MAX_BITS do",
            "* BLOOM_BITS_PER_ACTOR do",
            "A filter has at most one mebibyte.",
        ),
        (
            "no-ttl",
            "expire_with(meta_key, filling)",
            "",
            "The filter under construction expires with its target.",
        ),
        (
            "data-lost",
            "local has_data = meta.filling and redis.call('GETBIT', filling, meta.filling) == 1",
            "local has_data = meta.filling",
            "A build whose filter was lost does not resume.",
        ),
    ),
    *mutants_of(
        "reactions/lua/fill_bloom.lua",
        [BLOOM, GATE],
        (
            "another-build",
            "if meta[2] ~= ARGV[1] or redis.call",
            "if not meta[2] or redis.call",
            "A build that was replaced adds nothing.",
        ),
        (
            "data-lost",
            "or redis.call('GETBIT', filling, meta[1]) == 0 then",
            "then",
            "A build whose filter was lost does not finish.",
        ),
        (
            "inactive",
            "touch_build(meta_key)",
            "",
            "Each page keeps its build active.",
        ),
        (
            "no-ttl",
            "expire_with(meta_key, bloom)",
            "",
            "A finished filter expires with its target, or not at all.",
            "The key that is renamed has the expiry of its target: each change of it includes the"
            " filter under construction.",
        ),
        (
            "filling-stays",
            "redis.call('HDEL', meta_key, 'filling')",
            "",
            "After a build no filter is under construction.",
        ),
    ),
]

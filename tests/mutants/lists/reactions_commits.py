"""Mutants of the scripts that apply commits."""

from __future__ import annotations

from tests.mutants.mutant import mutants_of

APPLY = "tests/integration/reactions/test_apply.py"
HYDRATE = "tests/integration/reactions/test_hydrate.py"
BLOOM = "tests/integration/reactions/test_bloom.py"
EARLIEST = "tests/integration/reactions/test_earliest.py"
GATE = "tests/integration/reactions/test_gate.py"

MUTANTS = [
    *mutants_of(
        "reactions/lua/apply.lua",
        [APPLY, HYDRATE, EARLIEST],
        (
            "order",
            "elseif db_version == meta.db_version + 1 then",
            "elseif db_version > meta.db_version then",
            "Commits are applied in the order of the counter's versions.",
        ),
        (
            "fence-lowered",
            "elseif db_version > tonumber(redis.call('GET', fence) or 0) then",
            "else",
            "A fence never falls.",
        ),
        (
            "cold-ahead-unbounded",
            "if is_new and redis.call('HLEN', ahead) < max_ahead then",
            "if is_new then",
            "A limited number of commits waits while a target is loaded.",
        ),
        (
            "cold-reads-wait",
            "if is_new and redis.call('HLEN', ahead) < max_ahead then",
            "if redis.call('HLEN', ahead) < max_ahead then",
            "A commit that changed nothing does not wait for the next version.",
        ),
        (
            "ahead-no-ttl",
            "redis.call('EXPIRE', ahead, AHEAD_TTL_S)",
            "",
            "Commits that wait for a hydration expire.",
        ),
        (
            "placeholder-overwrites",
            "redis.call('HSETNX', ahead, db_version_text, PLACEHOLDER)",
            "redis.call('HSET', ahead, db_version_text, PLACEHOLDER)",
            "A placeholder does not replace a commit.",
        ),
        (
            "placeholder-stays",
            "if meta.blocked then redis.call('HDEL', ahead, db_version_text) end",
            "",
            "An applied commit removes its placeholder.",
        ),
        (
            "duplicate-moves-base",
            "confirm_entries(meta, outbox, actors, versions, states, false)",
            "confirm_entries(meta, outbox, actors, versions, states, true)",
            "A duplicate does not set the base of entries.",
        ),
        (
            "duplicate-confirms-nothing",
            "if #actors > 0 and math.floor(",
            "if false and math.floor(",
            "A duplicate confirms entries.",
        ),
        (
            "restored-confirms",
            "if #actors > 0 and math.floor(db_version / EPOCH) =="
            " math.floor(meta.db_version / EPOCH) then",
            "if #actors > 0 then",
            "A commit from before a restore of MySQL confirms nothing.",
        ),
        (
            "other-reign-stays",
            "local dropped = redis.call('UNLINK', meta_key, recent, bloom, filling, row_requests,"
            " earliest) > 0",
            "local dropped = false",
            "A target of another reign that misses a commit is deleted.",
        ),
        (
            "dropped-is-cold",
            "dropped and 'DROPPED' or 'COLD'",
            "'COLD'",
            "A target of another reign that misses a commit is loaded again.",
        ),
        (
            "drained-is-buffered",
            "if meta.db_version >= db_version and code == 'BUFFERED' then code = 'APPLIED' end",
            "",
            "A commit that was applied from ahead is APPLIED.",
        ),
        (
            "blocked-stays",
            "redis.call('HDEL', meta_key, 'blocked')",
            "",
            "A target without missing commits is not blocked.",
        ),
        (
            "blocked-expires",
            "if not meta.blocked and meta.outbox_count == 0 then"
            " persist_keys(meta_key, recent, bloom, filling) end",
            "",
            "A blocked target does not expire.",
        ),
        (
            "blocked-not-indexed",
            "redis.call('ZADD', index, 'NX', now, member)",
            "",
            "A blocked target is in the index.",
        ),
        (
            "gap-in-spite-of-progress",
            "elseif not meta.blocked or meta.db_version > before then",
            "elseif not meta.blocked then",
            "Progress begins the time until a gap again.",
        ),
        (
            "gap-of-time-only",
            "(left > max_ahead or (left > 0 and math.abs(now - meta.blocked) > GAP_US))",
            "(left > 0 and math.abs(now - meta.blocked) > GAP_US)",
            "Too many commits ahead are a gap.",
        ),
        (
            "gap-of-number-only",
            "(left > max_ahead or (left > 0 and math.abs(now - meta.blocked) > GAP_US))",
            "(left > max_ahead)",
            "A commit that is missing for a second is a gap.",
        ),
        (
            "gap-of-later-clock",
            "math.abs(now - meta.blocked) > GAP_US",
            "now - meta.blocked > GAP_US",
            "A target that was blocked at a time ahead of the clock has a gap.",
        ),
        (
            "eviction-unfinished",
            "if code ~= 'GAP' and (has_next or over > 0) then",
            "if code ~= 'GAP' and has_next then",
            "A call that leaves actors above the cap is repeated.",
        ),
        (
            "coverage-not-stored",
            "if evicted > 0 then write_coverage(meta, meta_key) end",
            "",
            "The floor is stored with the eviction.",
        ),
        (
            "idle-stays-indexed",
            "if #idle > 0 then redis.call('ZREM', index, unpack(idle)) end",
            "",
            "A target without entries and missing commits leaves the index.",
        ),
        (
            "no-rebuild",
            "local rebuild = evicted > 0 and"
            " request_rebuild(meta_key, filter_of(meta), meta.base) or 0",
            "local rebuild = 0",
            "An eviction requests a build of the filter.",
        ),
        (
            "error-stops-others",
            "local _, answer = pcall(apply_to_target, KEYS[k]",
            "local _, answer = nil, apply_to_target(KEYS[k]",
            "An invalid target does not stop the commits of others.",
        ),
        (
            "page-not-watched",
            "if meta.earliest then meta.on_rows",
            "if false then meta.on_rows",
            "A commit drops the cached page that it changes.",
        ),
        (
            "cold-without-entries",
            "'DROPPED' or 'COLD', redis.call('HLEN', outbox), 0, 0}",
            "'DROPPED' or 'COLD', 0, 0, 0}",
            "A commit of a target that is not loaded reports its outbox.",
        ),
        (
            "rows-of-call-free",
            "budget = MAX_ROWS - tonumber(ARGV[6])",
            "budget = MAX_ROWS",
            "The rows of a call count against its budget.",
        ),
    ),
    *mutants_of(
        "reactions/lua/commits.inc.lua",
        [APPLY, GATE, BLOOM, HYDRATE, EARLIEST],
        (
            "filter-not-filled",
            "if meta.bloom > 0 then bloom_add_all(bloom, meta.bloom, actors) end",
            "",
            "An evicted actor is in the filter.",
        ),
        (
            "new-filter-not-filled",
            "if meta.filling > 0 then bloom_add_all(filling, meta.filling, actors) end",
            "",
            "An evicted actor is in the filter under construction, too.",
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
            "delta-of-confirmed",
            "meta.delta = meta.delta - (want - base)",
            "",
            "A confirmed entry leaves the delta.",
        ),
        (
            "base-of-duplicate",
            "elseif is_new and base ~= states[i] then",
            "elseif base ~= states[i] then",
            "Only a new commit sets the base of an entry.",
        ),
        (
            "delta-of-moved",
            "meta.delta = meta.delta + base - states[i]",
            "",
            "The delta follows the base of an entry.",
        ),
        (
            "confirmed-stays",
            "if #confirmed > 0 then redis.call('HDEL', outbox, unpack(confirmed)) end",
            "",
            "A confirmed entry leaves the outbox.",
        ),
        (
            "moved-not-stored",
            "if #moved > 0 then redis.call('HSET', outbox, unpack(moved)) end",
            "",
            "The new base of an entry is stored.",
        ),
        (
            "count-of-confirmed",
            "meta.outbox_count = meta.outbox_count - #confirmed",
            "",
            "A confirmed entry leaves the count of the outbox.",
        ),
        (
            "unlike-stays",
            "if #off > 0 then redis.call('ZREM', recent, unpack(off)) end",
            "",
            "An actor who is off leaves recent.",
        ),
        (
            "complete-never-evicts",
            "if meta.complete and meta.floor == 0 and meta.base <= cap then return 0, 0 end",
            "if meta.complete then return 0, 0 end",
            "recent has at most its cap of actors.",
        ),
        (
            "below-floor-stays",
            "if meta.floor > 0 then\n    over =",
            "if false then\n    over =",
            "An actor below the floor moves to the filter.",
        ),
        (
            "floor-inclusive",
            "'-inf', '(' .. string.format('%.0f', meta.floor)",
            "'-inf', string.format('%.0f', meta.floor)",
            "An actor at the floor stays in recent.",
            "Pages list only actors above the floor, and an actor at it is found in recent or in the"
            " filter.",
        ),
        (
            "floor-lowers",
            "meta.floor = math.max(meta.floor, tonumber(popped[#popped]))",
            "meta.floor = tonumber(popped[#popped])",
            "The floor never falls.",
        ),
        (
            "no-first-filter",
            "meta.complete, meta.bloom = false, BLOOM_FIRST_BITS\n",
            "meta.complete = false\n",
            "The first eviction begins a filter, which is not lacking any actor.",
        ),
        (
            "first-filter-unsealed",
            "redis.call('SETBIT', bloom, BLOOM_FIRST_BITS, 1) -- its seal",
            "",
            "The first filter has a seal, without which it denies no actor.",
        ),
        (
            "eviction-unbounded",
            "local count = math.min(over, math.floor(budget / EVICTION_ROWS))",
            "local count = over",
            "A call evicts within its budget.",
        ),
        (
            "version-of-rows",
            "meta.version = math.max(meta.version, tonumber(newest))",
            "",
            "Later versions of the gate are above the versions of applied rows.",
        ),
        (
            "version-text",
            "if #version > #newest or #version == #newest and version > newest then",
            "if version > newest then",
            "The newest version of a commit is the highest number.",
        ),
        (
            "row-requests-stay",
            "if redis.call('EXISTS', row_requests) == 1 then"
            " redis.call('HDEL', row_requests, unpack(actors)) end",
            "",
            "An applied row ends its row request.",
        ),
        (
            "page-not-dropped",
            "if meta.on_rows then meta.on_rows(actors, versions, states) end",
            "",
            "A commit drops the cached page that it changes.",
        ),
        (
            "placeholder-applied",
            "if not commit or commit == PLACEHOLDER then return false end",
            "if not commit then return false end",
            "A placeholder is not applied.",
        ),
        (
            "drain-unbounded",
            "if cost > budget and budget < MAX_ROWS then return true end",
            "",
            "A call applies at most 250 rows from ahead.",
        ),
        (
            "drain-free",
            "budget = math.max(0, budget - cost)",
            "",
            "Rows from ahead count against the budget of a call.",
        ),
        (
            "drained-stays",
            "redis.call('HDEL', ahead, key)",
            "",
            "An applied commit leaves ahead.",
        ),
        (
            "blocked-gets-ttl",
            "if meta.outbox_count > 0 or meta.blocked then return false end",
            "if meta.outbox_count > 0 then return false end",
            "A blocked target does not expire.",
        ),
        (
            "outbox-gets-ttl",
            "if meta.outbox_count > 0 or meta.blocked then return false end",
            "if meta.blocked then return false end",
            "A target with outbox entries does not expire.",
        ),
        (
            "recent-no-ttl",
            "expire_at(expires_at_ms, meta_key, recent)",
            "expire_at(expires_at_ms, meta_key)",
            "recent of an idle target expires with meta.",
        ),
        (
            "bloom-no-ttl",
            "if meta.bloom > 0 then expire_at(expires_at_ms, bloom) end",
            "",
            "The filter of an idle target expires with meta.",
        ),
        (
            "filling-no-ttl",
            "if meta.filling > 0 then expire_at(expires_at_ms, filling) end",
            "",
            "The filter under construction expires with meta.",
        ),
        (
            "total-of-commit",
            "meta.db_version, meta.base = db_version, total",
            "meta.db_version = db_version",
            "The base is the counter at db_version.",
        ),
    ),
    *mutants_of(
        "reactions/lua/earliest.inc.lua",
        [EARLIEST],
        (
            "left-the-page",
            "changed = changed or listed[actor] or",
            "changed = changed or",
            "An actor of the page who is off drops it.",
        ),
        (
            "entered-the-page",
            "changed = changed or listed[actor] or states[i] ~= '0' and tonumber(versions[i]) <= last",
            "changed = changed or listed[actor]",
            "An actor with a version up to the last one of the page drops it.",
        ),
        (
            "entered-at-the-end",
            "tonumber(versions[i]) <= last",
            "tonumber(versions[i]) < last",
            "An actor with the version of the last one, and a lower id, drops the page.",
            "Only the last of the 101 actors can differ, which is a sign of a next page and is not"
            " listed.",
        ),
        (
            "unlike-drops",
            "states[i] ~= '0' and tonumber",
            "tonumber",
            "A row that is off keeps a page that does not list its actor.",
        ),
    ),
    *mutants_of(
        "reactions/lua/cache_earliest.lua",
        [EARLIEST],
        (
            "older-page",
            "or tonumber(m[1]) > tonumber(ARGV[2])",
            "",
            "A page that was read before a commit is not cached after it.",
        ),
        (
            "other-reign",
            "or m[2] ~= ARGV[1] or",
            "or",
            "A page is not cached with a target of another reign.",
        ),
        (
            "pages-mixed",
            "redis.call('UNLINK', KEYS[2])",
            "",
            "A page replaces the one before it.",
        ),
        (
            "no-ttl",
            "redis.call('PEXPIRE', KEYS[2], ARGV[4])",
            "",
            "A cached page expires.",
        ),
    ),
]

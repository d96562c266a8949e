"""Mutants of the scripts that read targets, and of what all scripts share."""

from __future__ import annotations

from tests.mutants.mutant import mutants_of

REACTIONS = "tests/integration/reactions"
GATE = f"{REACTIONS}/test_gate.py"
APPLY = f"{REACTIONS}/test_apply.py"
HYDRATE = f"{REACTIONS}/test_hydrate.py"
BLOOM = f"{REACTIONS}/test_bloom.py"
LIKERS = f"{REACTIONS}/test_likers.py"
EARLIEST = f"{REACTIONS}/test_earliest.py"
REQUEST_ROWS = f"{REACTIONS}/test_request_rows.py"
MY_LISTS = f"{REACTIONS}/test_my_lists.py"
INSPECTION = f"{REACTIONS}/test_inspection.py"
RANKINGS = "tests/integration/recommendations/test_rankings.py"

MUTANTS = [
    *mutants_of(
        "reactions/lua/read.lua",
        [GATE, BLOOM, HYDRATE],
        (
            "ttl-of-outbox",
            "if meta.outbox_count == 0 then renew_ttl(",
            "if true then renew_ttl(",
            "A read of a target with outbox entries sets no TTL.",
            "Its keys have no TTL, and renew_ttl sets none where there is none; the condition spares"
            " the question.",
        ),
        (
            "outbox-ignored",
            "if entry then return reply(string.sub(entry, 1, 1), 0) end",
            "",
            "The state of an actor is taken from the outbox entry.",
        ),
        (
            "recent-ignored",
            "if redis.call('ZSCORE', recent, actor) then return reply('1', 0) end",
            "",
            "An actor in recent is on.",
        ),
        (
            "no-rebuild",
            "request_rebuild(meta_key, filter, meta.base))",
            "0)",
            "A read of an unknown actor requests a build of the filter.",
        ),
        (
            "base-only",
            "{meta.base + meta.delta, state,",
            "{meta.base, state,",
            "The total includes the outbox.",
        ),
        (
            "error-stops-others",
            "local ok, reply = pcall(read_target, KEYS[k]",
            "local ok, reply = true, read_target(KEYS[k]",
            "An invalid target does not stop the reads of others.",
        ),
    ),
    *mutants_of(
        "reactions/lua/page.lua",
        [LIKERS, EARLIEST],
        (
            "other-reign",
            "if m[1] ~= ARGV[1] then return false end",
            "if not m[1] then return false end",
            "A target that was loaded in another reign is not listed.",
        ),
        (
            "floor-inclusive",
            "if tonumber(actors[i + 1]) > floor then",
            "if tonumber(actors[i + 1]) >= floor then",
            "Actors at the floor are read from MySQL: recent may lack some of them.",
        ),
        (
            "ties-cut",
            "if #page < 2 * count or count == 0 then return page end",
            "if true then return page end",
            "A page has all actors of equal versions or none.",
        ),
        (
            "first-version-lost",
            "for i = 1, #begin do actors[#actors + 1] = begin[i] end",
            "",
            "A page includes all actors of its first version.",
        ),
        (
            "cached-is-complete",
            "return {2, unpack(complete_ties(KEYS[3], first))}",
            "return {1, unpack(complete_ties(KEYS[3], first))}",
            "The cached first page is not all.",
            "The caller takes 1 and 2 alike: both have the whole first page.",
        ),
    ),
    *mutants_of(
        "reactions/lua/state.inc.lua",
        [GATE, BLOOM],
        (
            "filter-ignored",
            "  return '0', filter\nend",
            "  return nil, filter\nend",
            "An actor whom the filter denies is off.",
        ),
        (
            "filter-denies-all",
            "if filter == '0' or bloom_has(bloom, tonumber(filter), actor) then",
            "if filter == '0' then",
            "A filter denies none of its members.",
        ),
        (
            "missing-filter-denies",
            "if filter == '0' or bloom_has(bloom, tonumber(filter), actor) then",
            "if filter ~= '0' and bloom_has(bloom, tonumber(filter), actor) then",
            "Without a filter an actor outside of recent is unknown.",
            "Without a filter the key has no seal, either: the next line returns the same.",
        ),
        (
            "unsealed-denies",
            "if redis.call('GETBIT', bloom, filter) == 0 then return nil, '0' end",
            "",
            "A filter that lost its key denies no actor.",
        ),
    ),
    *mutants_of(
        "reactions/lua/rebuild.inc.lua",
        [BLOOM, APPLY],
        (
            "fitting-filter",
            "bits >= base * BLOOM_BITS_PER_ACTOR / 2 or",
            "false or",
            "No build is requested while the filter is large enough.",
        ),
        (
            "largest-filter",
            "or bits >= BLOOM_MAX_BITS) then return 0 end",
            ") then return 0 end",
            "No build is requested for a filter of the maximum size.",
        ),
        (
            "every-time",
            "if math.abs(now_ms - tonumber(redis.call('HGET', key, 'build_requested_at') or 0)) <"
            " REBUILD_AGAIN_MS then return 0 end",
            "",
            "A build is requested once in ten minutes.",
        ),
        (
            "never-again",
            "if math.abs(now_ms - tonumber(redis.call('HGET', key, 'build_requested_at') or 0)) <",
            "if tonumber(redis.call('HGET', key, 'build_requested_at') or 0) > 0 and 0 <",
            "A build that did not finish in ten minutes is requested again.",
        ),
    ),
    *mutants_of(
        "reactions/lua/idle.inc.lua",
        [GATE, APPLY, BLOOM],
        (
            "renewed-by-each-reader",
            "and left_ms < ttl_ms / 2 then",
            "and left_ms < ttl_ms then",
            "A reader renews the TTL after half of it.",
        ),
        (
            "ttl-of-blocked",
            "if left_ms >= 0 and left_ms",
            "if left_ms",
            "A read of a target without a TTL sets none.",
        ),
        (
            "meta-only",
            "+ ttl_ms, meta_key, recent, bloom, filling)",
            "+ ttl_ms, meta_key)",
            "All keys of a target expire at the same instant.",
        ),
        (
            "later-key-stays",
            "if at_ms >= 0 then expire_at(at_ms, key) else",
            "if false then expire_at(at_ms, key) else",
            "A key that is created later expires with the others.",
        ),
    ),
    *mutants_of(
        "reactions/lua/meta.inc.lua",
        [GATE, APPLY, HYDRATE],
        (
            "other-reign",
            "if m[1] ~= reign then return nil end",
            "",
            "A target that was loaded in another reign is not loaded.",
        ),
        (
            "protocol",
            "if protocol ~= PROTOCOL then",
            "if false then",
            "A target of another protocol is an error and stays unchanged.",
        ),
    ),
    *mutants_of(
        "reactions/lua/find_denied.lua",
        [INSPECTION],
        (
            "recent-ignored",
            "if counts[i] ~= 4 and not redis.call('ZSCORE', recent, ARGV[i]) then",
            "if counts[i] ~= 4 then",
            "An actor in recent is on.",
        ),
        (
            "filter-ignored",
            "if counts[i] ~= 4 and not redis",
            "if not redis",
            "A member of the filter is not denied.",
        ),
        (
            "targets-with-filter",
            "if not meta.complete and (meta.bloom == 0 or redis.call('GETBIT', filter, meta.bloom) == 0) then",
            "if not meta.complete then",
            "Actors are looked for in filters, too.",
        ),
        (
            "bits-of-neighbour",
            "first + math.floor((n - 1) / 4)",
            "first + math.floor(n / 4)",
            "Each actor has the four bits of its own.",
        ),
    ),
    *mutants_of(
        "reactions/lua/inspect_target.lua",
        [INSPECTION],
        (
            "no-floor-of-count",
            "if #newest == 2 * count and redis.call('ZCARD', recent) > count then",
            "if false then",
            "The fingerprint of a part of recent has a floor.",
        ),
        (
            "floor-inclusive",
            "if version <= floor then break end",
            "if version < floor then break end",
            "The fingerprint has actors above the floor only.",
        ),
        (
            "entries-of-meta",
            "redis.call('HLEN', KEYS[2]),",
            "tonumber(outbox_count),",
            "The entries are counted in the outbox itself.",
        ),
    ),
    *mutants_of(
        "reactions/lua/fill_list.lua",
        [APPLY, MY_LISTS],
        (
            "lease",
            "if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end",
            "",
            "A list that was read before a reaction was saved is not stored after it.",
        ),
        (
            "no-ttl",
            "redis.call('EXPIRE', KEYS[1], ARGV[2])",
            "",
            "A list expires.",
        ),
        (
            "lists-mixed",
            "redis.call('UNLINK', KEYS[1], KEYS[2])",
            "redis.call('UNLINK', KEYS[2])",
            "A list replaces the one before it.",
            "Each commit of the actor deletes the list with the lease, and a reader takes the lease"
            " when there is no list; a second reader's list would have the same reactions.",
        ),
    ),
    *mutants_of(
        "reactions/lua/page_ranking.lua",
        [RANKINGS],
        (
            "incomplete",
            "if redis.call('EXISTS', KEYS[2]) == 0 then return false end",
            "",
            "An incomplete ranking is not listed.",
        ),
        (
            "last-post-twice",
            "page[i] >= ARGV[2]",
            "page[i] > ARGV[2]",
            "A page begins after the last post of the one before it.",
        ),
        (
            "cap",
            "math.min(rank + 99, cap - 1)",
            "rank + 99",
            "A ranking has at most its cap of posts.",
        ),
        (
            "one-page-of-ties",
            "  rank = rank + 100\n",
            "  break\n",
            "More than a hundred posts with equal likes are skipped.",
        ),
    ),
    *mutants_of(
        "reactions/lua/project_ranking.lua",
        [RANKINGS],
        (
            "older-version",
            "if not stored[i] or tonumber(stored[i]) <= tonumber(version_of[post]) then",
            "if true then",
            "An older version of a counter is ignored.",
        ),
        (
            "unliked-stays",
            "if #none > 0 then redis.call('ZREM', KEYS[1], unpack(none)) end",
            "",
            "A post without likes leaves the ranking.",
        ),
        (
            "unbounded",
            "redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - ARGV[1])",
            "",
            "A ranking has at most its maximum of posts.",
        ),
        (
            "lost-part",
            "if ARGV[5] == '0' or ARGV[5] ~= '' and redis.call('GET', KEYS[5]) == ARGV[5] then",
            "if ARGV[5] ~= '' then",
            "A ranking of which Redis lost a part stays incomplete.",
        ),
        (
            "last-of-call",
            "if not version or tonumber(version) <= tonumber(ARGV[i + 2]) then",
            "if true then",
            "Of two versions of a post in one call the newer one counts.",
        ),
        (
            "ranked-forgotten",
            "if ranked[i] then",
            "if false then",
            "Ranked posts keep their versions.",
        ),
        (
            "versions-unbounded",
            "redis.call('HDEL', KEYS[2], unpack(dropped))",
            "",
            "Old versions of posts that are not ranked are dropped.",
        ),
        (
            "young-versions-dropped",
            "'-inf', now - ARGV[3], 'BYSCORE'",
            "'-inf', now, 'BYSCORE'",
            "Versions are kept while an update can be late.",
        ),
    ),
    *mutants_of(
        "reactions/lua/swap_ranking.lua",
        [RANKINGS],
        (
            "older",
            "if built_at and tonumber(built_at) > tonumber(ARGV[1]) then return 0 end",
            "",
            "An older ranking does not replace a newer one.",
        ),
        (
            "mixed",
            "redis.call('UNLINK', KEYS[1])",
            "",
            "A ranking replaces the one before it.",
        ),
    ),
]

"""Mutants of the gate."""

from __future__ import annotations

from tests.mutants.mutant import mutants_of

TOKENS = "tests/integration/reactions/test_order_tokens.py"
GATE = "tests/integration/reactions/test_gate.py"
BLOOM = "tests/integration/reactions/test_bloom.py"

MUTANTS = [
    *mutants_of(
        "reactions/lua/gate.lua",
        ["tests/integration/moderation/test_moderation.py"],
        (
            "hidden",
            "if status == 'hidden' and want == '1' and redis",
            "if false and redis",
            "A hidden target takes no new reactions.",
        ),
        (
            "hidden-unlike",
            "if status == 'hidden' and want == '1' and redis",
            "if status == 'hidden' and redis",
            "A reaction to a hidden target can be taken back.",
        ),
        (
            "hidden-from-author",
            "and redis.call('HGET', meta_key, 'author') ~= actor then",
            "then",
            "The author of a hidden target may react to it.",
        ),
    ),
    *mutants_of(
        "reactions/lua/gate.lua",
        [GATE, BLOOM, TOKENS],
        (
            "late",
            "if now > tonumber(ARGV[4]) then return {'LATE', now} end",
            "",
            "A command that arrives after its deadline writes nothing.",
        ),
        (
            "deleted",
            "if status == 'deleted' then return {'DELETED', now} end",
            "",
            "A deleted target refuses reactions.",
        ),
        (
            "other-reign",
            "if reign ~= ARGV[5] then return {'COLD', now} end",
            "",
            "A target that was loaded in another reign is cold.",
        ),
        (
            "version-is-no-time",
            "if now > version then version = now end",
            "",
            "A version is the time of acceptance where that is newer than all others.",
        ),
        (
            "version-repeats",
            "local version = newest + 1",
            "local version = newest + 0",
            "A version is above all others of the target, although the clock is behind.",
        ),
        (
            "recent-is-off",
            "if since then\n  base = '1'",
            "if since then\n  base = '0'",
            "An actor in recent is on.",
        ),
        (
            "complete-is-unknown",
            "elseif filter == 'complete' then\n  base = '0'",
            "elseif false then\n  base = '0'",
            "An actor who is not in recent of a complete target is off.",
            "The function of the branch for filters returns the same; the branch before it spares"
            " most runs its creation.",
        ),
        (
            "quick-of-no-time",
            "now - since < QUICK_US",
            "now - since < 0",
            "An unlike within ten seconds of a saved like takes a token.",
        ),
        (
            "quick-of-any-time",
            "and now - since < QUICK_US",
            "",
            "An unlike later than ten seconds after its like takes no token.",
        ),
        (
            "quick-like",
            "since and want == '0' and now",
            "since and now",
            "A repeated like takes no token.",
        ),
        (
            "full-in-one-step",
            "not is_quick and tonumber(outbox_count) < tonumber(ARGV[6]) and",
            "not is_quick and",
            "A full outbox accepts no new actor.",
        ),
        (
            "full-one-later",
            "if tonumber(outbox_count) >= tonumber(ARGV[6]) then return {'FULL'",
            "if tonumber(outbox_count) > tonumber(ARGV[6]) then return {'FULL'",
            "The outbox has at most its limit of entries.",
        ),
        (
            "nonce",
            "if of_request == nonce then",
            "if false then",
            "A repeat with the nonce of the entry gets the first reply.",
        ),
        (
            "nonce-changed",
            "return {flag == 'c' and 'CHANGED' or 'UNCHANGED', now, total, tonumber",
            "return {'CHANGED', now, total, tonumber",
            "A repeat of a request that changed nothing is UNCHANGED again.",
        ),
        (
            "nonce-version",
            "tonumber(entry_version), db_version",
            "version, db_version",
            "A repeat gets the version of the entry.",
        ),
        (
            "toggle-free",
            "if was ~= want and is_limited() then return {'LIMITED', now} end",
            "",
            "Each change of an entry takes a token.",
        ),
        (
            "toggle-without-change",
            "if was ~= want and is_limited()",
            "if is_limited()",
            "A request that changes nothing takes no token.",
        ),
        (
            "quick-free",
            "if is_quick and is_limited() then return {'LIMITED', now} end",
            "",
            "Quick changes are limited although each is saved.",
        ),
        (
            "toggles-no-ttl",
            "redis.call('EXPIRE', toggles, TOGGLES_S)",
            "",
            "Buckets of quick changes expire.",
        ),
        (
            "togglers-unbounded",
            "if redis.call('HLEN', toggles) >= MAX_TOGGLERS then redis.call('UNLINK', toggles) end",
            "",
            "A target has at most 10,000 buckets of quick changes.",
        ),
        (
            "toggles-one-more",
            "MAX_TOGGLES = 20 ",
            "MAX_TOGGLES = 21 ",
            "An actor has 20 quick changes at once.",
        ),
        (
            "expected-without-request",
            "if not (at and ARGV[8] and tonumber(ARGV[9]) >= tonumber(at)) then",
            "if not ARGV[8] then",
            "An expected state counts only if no row of the actor was applied since its request.",
        ),
        (
            "expected-of-any-version",
            "at and ARGV[8] and tonumber(ARGV[9]) >= tonumber(at)",
            "at and ARGV[8]",
            "An expected state that was read before its request is refused.",
        ),
        (
            "expected-of-later-version",
            "tonumber(ARGV[9]) >= tonumber(at)",
            "tonumber(ARGV[9]) > tonumber(at)",
            "An expected state that was read at the version of its request is accepted.",
        ),
        (
            "hint-renewed",
            "if not at then redis.call('HSET', row_requests, actor, db_version) end",
            "redis.call('HSET', row_requests, actor, db_version)",
            "A second request of an actor leaves the expected state of the first one valid.",
        ),
        (
            "hint-no-ttl",
            "redis.call('PEXPIRE', row_requests, ROW_REQUEST_TTL_MS)",
            "",
            "Row requests expire.",
        ),
        (
            "expected-is-off",
            "base = ARGV[8]",
            "base = '0'",
            "The expected state decides about an unknown actor.",
        ),
        (
            "unlike-adds",
            "local by = want == '1' and 1 or -1",
            "local by = 1",
            "An unlike subtracts one from the total.",
        ),
        (
            "total-before",
            "delta, total = delta + by, total + by",
            "delta = delta + by",
            "The reply has the total after the reaction.",
        ),
        (
            "count-replaced",
            "if is_new then outbox_count = outbox_count + 1 end",
            "outbox_count = outbox_count + 1",
            "An entry that is replaced is counted once.",
        ),
        (
            "changes-stay",
            "string.format('%d', (changes or 0) + 1)",
            "changes or '0'",
            "A change of the total raises its token.",
        ),
        (
            "repeat-with-old-token",
            "tonumber(entry_version), db_version, loaded, changes}",
            "tonumber(entry_version), db_version, loaded, '0'}",
            "A repeat gets the present total with the present token.",
        ),
        (
            "meta-expires",
            "redis.call('PERSIST', meta_key)",
            "",
            "meta of a target with outbox entries does not expire.",
        ),
        (
            "recent-expires",
            "redis.call('PERSIST', recent)",
            "",
            "recent of a target with outbox entries does not expire.",
        ),
        (
            "bloom-expires",
            "redis.call('PERSIST', bloom)",
            "",
            "The filter of a target with outbox entries does not expire.",
        ),
        (
            "filling-expires",
            "redis.call('PERSIST', filling)",
            "",
            "The filter under construction of a target with outbox entries does not expire.",
        ),
        (
            "index-not-nx",
            "redis.call('ZADD', KEYS[8], 'NX', version > now",
            "redis.call('ZADD', KEYS[8], version > now",
            "The first entry of a blocked target does not postpone its sweep.",
        ),
        (
            "index-missing",
            "redis.call('ZADD', KEYS[8], 'NX', version > now and now or version_text, ARGV[7])",
            "",
            "A target with outbox entries is in the index.",
        ),
        (
            "index-of-version",
            "version > now and now or version_text, ARGV[7])",
            "version_text, ARGV[7])",
            "The index has the time of acceptance, not a version ahead of the clock.",
        ),
        (
            "no-rebuild",
            "return {'UNKNOWN', now, request_rebuild(meta_key, filter, tonumber(base_total))}",
            "return {'UNKNOWN', now, 0}",
            "An unknown actor requests a build of the filter.",
        ),
        (
            "base-is-earlier-entry",
            "redis.call('HSET', outbox, actor, want .. ':' .. version_text .. ':' .. base",
            "redis.call('HSET', outbox, actor, want .. ':' .. version_text .. ':' .. was",
            "An entry that is replaced keeps its base, the saved state.",
        ),
    ),
]

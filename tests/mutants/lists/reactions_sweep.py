"""Mutants of the sweep's script, and of what is due."""

from __future__ import annotations

from tests.mutants.mutant import mutants_of

SWEEP = "tests/integration/reactions/test_sweep.py"
RECOVERY = "tests/integration/reactions/test_failover_recovery.py"

MUTANTS = [
    *mutants_of(
        "reactions/lua/sweep.lua",
        [SWEEP, RECOVERY],
        (
            "lost-commit",
            "elseif blocked and math.abs(now_us - blocked) > MIN_WAIT_US then code = 'GAP' end",
            "end",
            "A target that misses a commit for a second is loaded again.",
        ),
        (
            "gap-at-once",
            "elseif blocked and math.abs(now_us - blocked) > MIN_WAIT_US then",
            "elseif blocked then",
            "A commit that is missing for less than a second is no gap.",
        ),
        (
            "gap-of-later-clock",
            "math.abs(now_us - blocked) > MIN_WAIT_US",
            "now_us - blocked > MIN_WAIT_US",
            "A target that was blocked at a time ahead of the clock is loaded again.",
        ),
        (
            "not-loaded",
            "if not meta then code = 'COLD'",
            "if false then code = 'COLD'",
            "A target that has an outbox and is not loaded is hydrated.",
        ),
        (
            "blocked-forgotten",
            "and not blocked and not is_of_other_reign then",
            "and not is_of_other_reign then",
            "A blocked target without entries stays in the index.",
        ),
        (
            "other-reign-forgotten",
            "and not blocked and not is_of_other_reign then",
            "and not blocked then",
            "A target of another reign is hydrated: if it was blocked, its keys never expire.",
        ),
        (
            "all-are-due",
            "if is_due(version, swept_us, now_us, grace_us, max_wait_us) then",
            "if true then",
            "An entry is sent again when it is due.",
        ),
        (
            "scan-not-continued",
            "redis.call('HSCAN', outbox, cursor, 'COUNT', ARGV[4])",
            "redis.call('HSCAN', outbox, '0', 'COUNT', ARGV[4])",
            "The next page continues the scan.",
        ),
        (
            "progress-ahead",
            "if not began_us or is_ahead(began_us, now_us) then",
            "if not began_us then",
            "Progress ahead of the clock does not count.",
        ),
        (
            "oldest-of-page",
            "oldest_us = math.min(oldest_us, is_ahead(version, now_us) and indexed_us or version)",
            "oldest_us = is_ahead(version, now_us) and indexed_us or version",
            "The time in the index is the oldest entry's.",
        ),
        (
            "oldest-is-ahead",
            "is_ahead(version, now_us) and indexed_us or version)",
            "version)",
            "An entry ahead of the clock keeps the time that the index has.",
        ),
        (
            "swept-at-each-page",
            "is_done and began_us or swept_us, began_us",
            "began_us, began_us",
            "A sweep counts from the beginning of the last complete scan.",
        ),
        (
            "progress-stays",
            "  redis.call('UNLINK', sweep)\n",
            "",
            "An empty outbox has no progress.",
        ),
    ),
    *mutants_of(
        "infra/redis/lua/outbox.inc.lua",
        [SWEEP, RECOVERY],
        (
            "before-grace",
            "if age_us < grace_us then return 0 end",
            "",
            "An entry waits for its consumer before it is sent again.",
        ),
        (
            "no-maximum",
            "return doublings + math.floor(age_us / max_wait_us)",
            "return doublings",
            "An entry is due each max_wait_us.",
        ),
        (
            "at-each-sweep",
            "count_due(now_us - accepted_us, grace_us, max_wait_us) > before",
            "count_due(now_us - accepted_us, grace_us, max_wait_us) >= before",
            "An entry is due when its age has doubled, not at each sweep.",
        ),
        (
            "everything",
            "if grace_us <= 0 or is_ahead(",
            "if is_ahead(",
            "Without a grace each entry is due.",
        ),
        (
            "ahead-waits",
            "if grace_us <= 0 or is_ahead(accepted_us, now_us) then return true end",
            "if grace_us <= 0 then return true end",
            "An entry ahead of the clock is due.",
        ),
        (
            "empty-stays-indexed",
            "redis.call('ZREM', index_key, member)",
            "",
            "An empty outbox leaves the index.",
        ),
    ),
]

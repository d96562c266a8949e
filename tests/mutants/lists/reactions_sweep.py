"""Mutants of the sweep's script."""

from __future__ import annotations

from tests.mutants.mutant import mutants_of

SWEEP = "tests/integration/reactions/test_sweep.py"
RECOVERY = "tests/integration/reactions/test_failover_recovery.py"

MUTANTS = [
    *mutants_of(
        "reactions/lua/sweep.lua",
        [SWEEP, RECOVERY],
        (
            "grace",
            "if version <= now_us - grace_us then",
            "if true then",
            "An entry waits for its consumer before it is sent again.",
        ),
        (
            "lost-commit",
            "elseif blocked and now_us - blocked > MIN_WAIT_US then code = 'GAP' end",
            "end",
            "A target that misses a commit for a second is loaded again.",
        ),
        (
            "gap-at-once",
            "elseif blocked and now_us - blocked > MIN_WAIT_US then",
            "elseif blocked then",
            "A commit that is missing for less than a second is no gap.",
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
            "scan-cut",
            "if page[1] == '0' then",
            "if true then",
            "Before the end of its scan a target is due at once.",
        ),
        (
            "no-back-off",
            "wait_us = math.max(grace_us, MIN_WAIT_US) * 2 ^ math.min(sweeps + 1, 20)",
            "wait_us = math.max(grace_us, MIN_WAIT_US)",
            "Each sweep that found entries doubles the wait.",
        ),
        (
            "back-off-of-nothing",
            "  if #found > 2 then\n",
            "  if true then\n",
            "A sweep that found nothing does not double the wait.",
        ),
        (
            "cursor-not-stored",
            "if meta then redis.call('HSET', meta_key, 'sweeps', sweeps, 'sweep_cursor', page[1]) end",
            "",
            "The next sweep continues the scan.",
        ),
        (
            "not-scheduled",
            "reschedule_outbox(index, member, now_us, wait_us, grace_us)",
            "",
            "A swept target is due after its wait.",
        ),
    ),
    *mutants_of(
        "infra/scripts/outbox.inc.lua",
        [SWEEP, RECOVERY],
        (
            "removed-comes-back",
            "redis.call('ZADD', index_key, 'XX', string",
            "redis.call('ZADD', index_key, string",
            "A target that left the index meanwhile stays out of it.",
            "A script is atomic: the target is in the index, or its outbox was written by this"
            " script's caller and the next sweep removes it.",
        ),
        (
            "no-maximum",
            "return math.min(math.max(backoff_us, grace_us, MIN_WAIT_US), tonumber(max_wait_us))",
            "return math.max(backoff_us, grace_us, MIN_WAIT_US)",
            "The wait between two sweeps has a maximum.",
        ),
        (
            "no-minimum",
            "math.max(backoff_us, grace_us, MIN_WAIT_US)",
            "backoff_us",
            "The wait between two sweeps is at least the grace and a second.",
        ),
    ),
]

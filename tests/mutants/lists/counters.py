"""Mutants of claims and counters."""

from __future__ import annotations

from tests.mutants.mutant import mutants_of

CLAIMS = "tests/integration/counters/test_claims.py"
FOLLOW_CLAIMS = "tests/integration/counters/test_follow_claims.py"
COUNTERS = "tests/integration/counters/test_counters.py"
RECONCILIATION = "tests/integration/reconciliation/test_reconciliation.py"
PERSIST = "tests/integration/reactions/test_persist.py"

MUTANTS = [
    *mutants_of(
        "counters/lua/claim.lua",
        [CLAIMS, FOLLOW_CLAIMS],
        (
            "late",
            "if now_us > tonumber(ARGV[6]) then return {'LATE'} end",
            "",
            "A claim that arrives after its deadline reserves nothing.",
        ),
        (
            "expired-counts",
            "redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf',"
            " string.format('%.0f', now_us - ARGV[4] * 1000))",
            "",
            "A claim expires by itself, although others are newer.",
        ),
        (
            "repeat-is-another",
            "local first = before_us > 0 and redis.call('GET', KEYS[3])",
            "local first = nil",
            "A repeat of the command gets the first reply.",
        ),
        (
            "repeat-of-released",
            "local first = before_us > 0 and redis.call('GET', KEYS[3])",
            "local first = redis.call('GET', KEYS[3])",
            "A repeat after its claim was dropped reserves a slot again.",
        ),
        (
            "own-claim-counts",
            "if before_us > 0 then claimed = claimed - 1 end",
            "",
            "The member's own earlier claim takes no second slot.",
        ),
        (
            "one-more",
            "+ claimed >= tonumber(ARGV[2])",
            "+ claimed > tonumber(ARGV[2])",
            "The total and the claims are at most the limit.",
        ),
        (
            "total-only",
            "if total + claimed >= tonumber",
            "if total >= tonumber",
            "Claims count below the limit.",
        ),
        (
            "not-a-number",
            "if type(total) ~= 'number' then return {'COLD'} end",
            "",
            "Totals that a newer version of Plaza stored without the column are read again.",
        ),
        (
            "claims-no-ttl",
            "redis.call('PEXPIRE', KEYS[2], ARGV[4])",
            "",
            "Claims of a user who is gone expire.",
        ),
        (
            "reply-no-ttl",
            "now_us, before_us), 'PX', ARGV[5])",
            "now_us, before_us))",
            "The reply to a claim expires.",
        ),
        (
            "earlier-lost",
            "return {'CLAIMED', now_us, before_us}",
            "return {'CLAIMED', now_us, 0}",
            "A claim that is taken back restores the earlier one.",
        ),
    ),
    *mutants_of(
        "counters/lua/release.lua",
        [CLAIMS, FOLLOW_CLAIMS],
        (
            "later-claim",
            "if claimed_us and tonumber(claimed_us) <= tonumber(until_us) then",
            "if claimed_us then",
            "A claim that is later than what was counted stays.",
        ),
        (
            "counted-not-stored",
            "redis.call('HSET', counted_key, member, until_us)",
            "",
            "A claim that was counted is not restored.",
        ),
        (
            "counted-no-ttl",
            "redis.call('PEXPIRE', counted_key, ARGV[1])",
            "",
            "The times of counted claims expire.",
        ),
        (
            "counted-lowered",
            "if counted_us < tonumber(until_us) then",
            "if true then",
            "The time up to which claims are counted never falls.",
        ),
    ),
    *mutants_of(
        "counters/lua/unclaim.lua",
        [CLAIMS, FOLLOW_CLAIMS],
        (
            "later-claim",
            "if tonumber(claimed_us) ~= tonumber(ARGV[2]) then",
            "if false then",
            "A later claim of the member stays.",
        ),
        (
            "not-noted",
            "redis.call('HSET', KEYS[2], ARGV[1] .. '@' .. ARGV[2], ARGV[3])",
            "",
            "A later claim that is taken back does not restore one that was taken back before.",
        ),
        (
            "no-ttl",
            "redis.call('PEXPIRE', KEYS[2], ARGV[4])",
            "",
            "The times of claims that were taken back expire.",
        ),
        (
            "counted-restored",
            "if tonumber(before_us) <= tonumber(redis.call('HGET', KEYS[2], ARGV[1]) or 0) then",
            "if tonumber(before_us) == 0 then",
            "A claim that was counted is not restored.",
        ),
        (
            "chain-of-one",
            "for _ = 1, MAX_EARLIER do",
            "for _ = 1, 1 do",
            "All claims that were taken back are skipped.",
        ),
    ),
    *mutants_of(
        "counters/mysql_store.py",
        [COUNTERS, PERSIST],
        (
            "not-locked",
            "ORDER BY target_type FOR UPDATE",
            "ORDER BY target_type",
            "Consumers of a target wait for each other.",
        ),
        (
            "missing-not-created",
            "if missing := [target for target in targets if target not in counters]:",
            "if missing := [target for target in targets if False]:",
            "A counter that is missing is created and locked.",
        ),
        (
            "insert-ignore",
            "ON DUPLICATE KEY UPDATE target_id = content_counter.target_id",
            "ON DUPLICATE KEY UPDATE like_total = 0",
            "A counter that another transaction created keeps its totals.",
        ),
        (
            "version-per-transaction",
            "raised.get((target, column), 1) if column in by else 0",
            "1 if column in by else 0",
            "The version is raised by the number of commits.",
        ),
        (
            "version-of-other-column",
            "raised.get((target, column), 1) if column in by else 0",
            "raised.get((target, column), 1)",
            "The version of a total that is not named stays.",
        ),
        (
            "users-version",
            'names = [*changed, "version"]\n    sums = ", ".join(f"{name} = user_counter',
            'names = [*changed, "version"]\n    sums = ", ".join(f"{name} = 1 + 0 * user_counter',
            "The totals of a user are added up.",
        ),
        (
            "nowait",
            "FOR UPDATE NOWAIT",
            "FOR UPDATE",
            "A counter that is locked is reported without a wait.",
        ),
    ),
    *mutants_of(
        "counters/mysql_store.py",
        [RECONCILIATION],
        (
            "correct-adds",
            'changes += [f"{column} = VALUES({column})"',
            'changes += [f"{column} = {column} + VALUES({column})"',
            "A correction sets the totals and versions.",
        ),
    ),
    *mutants_of(
        "counters/redis_store.py",
        [COUNTERS, CLAIMS, FOLLOW_CLAIMS, "tests/integration/follows/test_follows.py"],
        (
            "claims-not-cached",
            '                f"{{{shard}}}:user:{user_id}:claims",\n',
            "",
            "A user with claims and without totals is updated.",
        ),
        (
            "late-claim-is-cold",
            'if code == "LATE":',
            "if False:",
            "A claim after its deadline is RedisDown.",
        ),
        (
            "no-skew",
            "claims[i][2] + MAX_CLOCK_SKEW_US",
            "claims[i][2]",
            "A claim of a node whose clock is ahead is released by its version.",
        ),
    ),
]

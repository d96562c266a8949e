"""The consumer beside what is commonly written and beside a bare bulk upsert, on the same facts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

from pymysql.cursors import Cursor

from bench.baselines import bulk_upsert, row_by_row
from bench.crowd import react
from bench.figures import Figure, Goal, Peer
from bench.stage import Stage
from local.paths import LocalError
from plaza import reactions
from plaza.infra import mysql, redis
from plaza.reactions import ReactionChanged, Target, mysql_reactions, reacting, redis_reactions
from plaza.reactions.reactions import Key

BATCH = 1000
BATCHES = 60
SIZES = (10, 100, 1000)
FIRST_POST = 10_000_000  # nobody else's posts are here
_AT_ONCE = 200

Save = Callable[[Cursor, Sequence[ReactionChanged]], None]


def measure(stage: Stage) -> list[Figure]:
    """Facts a second in one process, settle included; the three take turns, batch by batch."""
    stage.clear()
    for table in (*row_by_row.TABLES, *bulk_upsert.TABLES):
        mysql.write(table)
    count = stage.some(BATCHES) * BATCH
    facts = iter(_pending_facts(stage, count + sum(SIZES)))
    statements = [_count_statements(_take(facts, size)) for size in SIZES]
    ours_s = common_s = bare_s = 0.0
    while batch := _take(facts, BATCH):
        ours_s += _time(partial(reactions.save, batch))
        common_s += _time(partial(_commit, row_by_row.save, batch))
        bare_s += _time(partial(_commit, bulk_upsert.save, batch))
    _check_all_is_saved(count + sum(SIZES))

    rate, common, bare = count / ours_s, count / common_s, count / bare_s
    return [
        Figure("consumer, batches of 1000", rate, "facts/s", goal=Goal("at least", 20_000)),
        Figure(
            "consumer, against row by row",
            rate,
            "facts/s",
            Peer("row by row", common),
            Goal("at least", 5, "ratio"),
        ),
        Figure("  against a bare bulk upsert", rate, "facts/s", Peer("bulk upsert", bare)),
        Figure(
            "statements per batch of 1000",
            statements[2],
            "",
            Peer("batch of 10", statements[0]),
            Goal("at most", 1, "ratio"),
        ),
        Figure("  batch of 100", statements[1], "", Peer("batch of 10", statements[0])),
    ]


def _pending_facts(stage: Stage, count: int) -> list[ReactionChanged]:
    """Facts that Redis has accepted and nobody has saved, with the popularity of real posts."""
    played = [
        (kind, Target("post", FIRST_POST + post), actor) for kind, post, actor in react(count)
    ]
    wanted = list(dict.fromkeys((kind, target) for kind, target, _ in played))
    stage.add_posts({target.id for _, target in wanted})
    for start in range(0, len(wanted), _AT_ONCE):
        reacting.hydrate(wanted[start : start + _AT_ONCE])
    facts = []
    for kind, target, actor in played:
        decision = redis_reactions.gate(kind, target, actor, True, None)
        if decision.code == "UNKNOWN":  # a round before left it more likers than hydrate brings
            hint = mysql_reactions.read_hint(kind, target, actor)
            decision = redis_reactions.gate(kind, target, actor, True, hint)
        if decision.code != "CHANGED":
            raise LocalError(f"the gate said {decision.code}")
        key = Key(*target, kind.name, actor)
        facts.append(ReactionChanged(key, True, decision.ver_us, decision.total))
    return facts


def _take(facts: Iterator[ReactionChanged], count: int) -> list[ReactionChanged]:
    return list(islice(facts, count))


def _commit(save: Save, facts: Sequence[ReactionChanged]) -> None:
    mysql.atomically(lambda cursor: save(cursor, facts))


def _time(work: Callable[[], None]) -> float:
    began_s = time.perf_counter()
    work()
    return time.perf_counter() - began_s


def _count_statements(facts: Sequence[ReactionChanged]) -> int:
    """What MySQL was asked to save ``facts``, begin and commit included."""
    before = _questions()
    reactions.save(facts)
    return _questions() - before - 1


def _questions() -> int:
    return int(mysql.fetch_all("SHOW SESSION STATUS LIKE 'Questions'")[0][1])


def _check_all_is_saved(count: int) -> None:
    rows = mysql.fetch_all(
        "SELECT (SELECT COUNT(*) FROM reaction WHERE target_id >= %s AND state = 1),"
        " (SELECT SUM(like_total + collect_total) FROM content_counter WHERE target_id >= %s)",
        (FIRST_POST, FIRST_POST),
    )
    pending = redis.execute("KEYS", "*:pending")
    if rows != [(count, count)] or pending:
        raise LocalError(f"{count} facts made rows, totals {rows}; {len(pending)} targets pending")

"""The consumer beside a row-by-row consumer and a bare bulk upsert, on the same events."""

import gc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import NamedTuple

from pymysql.cursors import Cursor

from bench.baselines import bulk_upsert, row_by_row
from bench.dataset import load_reactions
from bench.figures import Figure, Goal, Peer
from bench.harness import Harness
from bench.meters import count_statements, mysql_load, time_s
from local.paths import LocalError
from plaza import counters
from plaza.infra import mysql, redis
from plaza.reactions import FOLLOW, Kind, Target, mysql_reactions, persist, redis_gate
from plaza.reactions import react as reactions_react
from plaza.reactions.model import ReactionEvent, ReactionKey

BATCH = 1000
BATCHES = 60
BATCHES_OF_FOLLOWS = 20
BATCH_OF_LOAD, BATCHES_OF_LOAD = 100, 20
SIZES = (10, 100, 1000)
FIRST_ID = 10_000_000  # of posts and users; no other bench uses them
FOLLOWED_USER = Target("user", FIRST_ID)
_AT_ONCE = 200

Save = Callable[[Cursor, Sequence[ReactionEvent]], None]
Reaction = tuple[Kind, Target, int]
"""A kind, a target, an actor."""


class Rates(NamedTuple):
    """Events a second: of the consumer, row by row, and of a bulk upsert."""

    ours: float
    common: float
    bare: float


def measure(harness: Harness) -> list[Figure]:
    """Measure events a second in one process, acknowledgement included."""
    harness.clear()
    for table in (*row_by_row.TABLES, *bulk_upsert.TABLES):
        mysql.write(table)
    count = harness.scale(BATCHES) * BATCH + BATCHES_OF_LOAD * BATCH_OF_LOAD + sum(SIZES)
    on_posts = [
        (kind, Target("post", FIRST_ID + post), actor)
        for kind, post, actor in load_reactions(count)
    ]
    harness.add_posts({target.id for _, target, _ in on_posts})
    follows = _follows(harness.scale(BATCHES_OF_FOLLOWS) * BATCH + sum(SIZES))

    made = sorted({target for _, target, _ in (*on_posts, *follows)})
    mysql.run_in_transaction(lambda cursor: counters.lock_content(cursor, made))

    events, follow_events = _accept(on_posts), _accept(follows)
    mixed = chain.from_iterable(zip(events, follow_events, strict=False))
    samples = [_take(mixed, size) for size in SIZES]
    statements = [count_statements(partial(persist.save, sample)) for sample in samples]
    load = _load_mysql(_take(events, BATCHES_OF_LOAD * BATCH_OF_LOAD))
    rates, follow_rates = _race(events), _race(follow_events)
    _check_all_is_saved(len(on_posts) + len(follows))
    return [
        Figure("consumer, batches of 1000", rates.ours, "events/s", goal=Goal("at least", 20_000)),
        *_beside("consumer", rates),
        *_beside("follows of one viral user", follow_rates),
        *load,
        Figure(
            "statements per batch of 1000, with follows",
            statements[2],
            "",
            Peer("batch of 10", statements[0]),
            Goal("at most", 1, "ratio"),
        ),
        Figure("  batch of 100", statements[1], "", Peer("batch of 10", statements[0])),
    ]


def _load_mysql(events: Sequence[ReactionEvent]) -> list[Figure]:
    """Return what an event costs MySQL in batches of 100, as a queue with some traffic makes them:
    `make capacity` uses both figures."""
    before, batches = mysql_load(), iter(events)
    while batch := _take(batches, BATCH_OF_LOAD):
        persist.save(batch)
    load = mysql_load() - before
    name = f"an event in batches of {BATCH_OF_LOAD}"
    return [
        Figure(f"{name}, CPU of MySQL", load.cpu_s / len(events) * 1e6, "us"),
        Figure("  redo log and binlog", load.written_bytes / len(events), "bytes"),
    ]


def _beside(name: str, rates: Rates) -> list[Figure]:
    common, bare = Peer("row by row", rates.common), Peer("bulk upsert", rates.bare)
    goal = Goal("at least", 5, "ratio")
    return [
        Figure(f"{name}, against row by row", rates.ours, "events/s", common, goal),
        Figure("  against a bare bulk upsert", rates.ours, "events/s", bare),
    ]


def _follows(count: int) -> list[Reaction]:
    return [(FOLLOW, FOLLOWED_USER, FIRST_ID + actor) for actor in range(1, count + 1)]


def _race(events: Iterator[ReactionEvent]) -> Rates:
    """Run the three in turns, batch by batch, so that they share the machine's fast and slow
    moments."""
    gc.collect()
    gc.freeze()  # a Lambda has only its own batch in memory: the others are not collected
    count, ours_s, common_s, bare_s = 0, 0.0, 0.0, 0.0
    while batch := _take(events, BATCH):
        count += len(batch)
        ours_s += time_s(partial(persist.save, batch))
        common_s += time_s(partial(_commit, row_by_row.save, batch))
        bare_s += time_s(partial(_commit, bulk_upsert.save, batch))
    gc.unfreeze()
    return Rates(count / ours_s, count / common_s, count / bare_s)


def _accept(reactions: Sequence[Reaction]) -> Iterator[ReactionEvent]:
    """Return the events of ``reactions``, accepted by Redis and not saved."""
    wanted = list(dict.fromkeys((kind, target) for kind, target, _ in reactions))
    for start in range(0, len(wanted), _AT_ONCE):
        reactions_react.hydrate(wanted[start : start + _AT_ONCE])
    events = []
    for kind, target, actor in reactions:
        decision = redis_gate.gate(kind, target, actor, True, "bench", None)
        if decision.code == "UNKNOWN":  # more likers than are loaded, from an earlier round
            expected = mysql_reactions.read_state(kind, target, actor)
            decision = redis_gate.gate(kind, target, actor, True, "bench", expected)
        if decision.code != "CHANGED":
            raise LocalError(f"the gate returned {decision.code}")
        key = ReactionKey(*target, kind.name, actor)
        request_id = f"JKJaXm{actor:010}="  # as long as API Gateway's
        events.append(ReactionEvent(key, True, decision.version_us, request_id))
    return iter(events)


def _take(events: Iterator[ReactionEvent], count: int) -> list[ReactionEvent]:
    return list(islice(events, count))


def _commit(save: Save, events: Sequence[ReactionEvent]) -> None:
    mysql.run_in_transaction(lambda cursor: save(cursor, events))


def _check_all_is_saved(count: int) -> None:
    totals = "SUM(like_total + collect_total + follow_total)"
    rows = mysql.fetch_all(
        "SELECT (SELECT COUNT(*) FROM reaction WHERE target_id >= %s AND state = 1),"
        f" (SELECT {totals} FROM content_counter WHERE target_id >= %s)",
        (FIRST_ID, FIRST_ID),
    )
    pending = redis.execute("KEYS", "*:outbox")
    if rows != [(count, count)] or pending:
        raise LocalError(f"{count} events made rows, totals {rows}; {len(pending)} targets pending")

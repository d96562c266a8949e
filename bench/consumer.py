"""The consumer beside a row-by-row consumer, a bulk upsert of rows, and one of rows, log, counters,
on the same events; where its time goes; and four consumers beside one."""

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple
from unittest import mock

from pymysql.cursors import Cursor

from bench.baselines import bulk_upsert, exact_upsert, row_by_row
from bench.dataset import load_reactions
from bench.figures import Figure, Goal, Peer
from bench.harness import Harness
from bench.meters import Cpu, count_statements, cpu, cpu_ms, mysql_load, time_s
from bench.parts import Parts
from bench.workers import play
from cli.paths import CommandError
from local.load.crowd import WORKERS
from local.stack.functions import CONTEXT
from plaza.core import counters
from plaza.core.reactions import (
    FOLLOW,
    LIKE,
    Kind,
    Target,
    hydration,
    mysql_rows,
    persist,
    redis_gate,
)
from plaza.core.reactions.model import ReactionEvent, ReactionKey
from plaza.core.reactions.queues import REACTIONS
from plaza.core.switches import Switches
from plaza.infra.mysql import mysql
from plaza.infra.queues import save_rate
from plaza.infra.redis import redis
from plaza.infra.runtime import switch_state
from plaza.infra.runtime.errors import Busy
from plaza.infra.runtime.process import paused_collection
from plaza.notifications.notifications import mysql_store as unread_rows

BATCH = persist.EVENTS_PER_TRANSACTION
BATCHES_AT_ONCE = REACTIONS.batch_size // BATCH  # that a consumer gets in a batch of the queue
BATCHES = 28
BATCHES_OF_FOLLOWS = 20
BATCHES_SIDE_BY_SIDE = 12
PACED_BATCHES = 16
BATCH_OF_LOAD, BATCHES_OF_LOAD = 100, 20
SIZES = (10, 100, 1000)
UNREAD_SIZES: dict[int, tuple[int, Goal | None]] = {
    1000: (8, Goal("at least", 0.85, "ratio")),
    200: (30, Goal("at least", 0.70, "ratio")),
    50: (60, None),
}
"""Events a batch -> pairs of batches, without and with the unread counter, and the goal."""
BATCHES_OF_ONE_AUTHOR = 6
FIRST_ID = 10_000_000  # of posts and users; no other bench uses them
FOLLOWED_USER, VIRAL_POST = Target("user", FIRST_ID), Target("post", 2 * FIRST_ID)
_AT_ONCE = 200
_READ_ONLY: Callable[[dict[str, Any], Any], object] = REACTIONS.processor(
    lambda events: None
).lambda_handler()

Save = Callable[[Cursor, Sequence[ReactionEvent]], None]
Reaction = tuple[Kind, Target, int]
"""A kind, a target, an actor."""


class Race(NamedTuple):
    """Events a second row by row, of a bulk upsert of the rows and of one that is exact; the parts
    of the consumer, its CPU and the CPU of the exact upsert; seconds of the function around it."""

    events: int
    common: float
    bare: float
    exact: float
    parts: Parts
    cpu: Cpu
    exact_cpu: Cpu
    codec_s: float

    @property
    def ours(self) -> float:
        return self.events / self.parts.took_s


def measure(harness: Harness) -> list[Figure]:
    """Measure events a second in one process, acknowledgement included."""
    harness.clear()
    for table in (*row_by_row.TABLES, *bulk_upsert.TABLES, *exact_upsert.TABLES):
        mysql.write(table)
    side_by_side = 2 * (BATCHES_SIDE_BY_SIDE + WORKERS) * BATCH
    count = harness.scale(BATCHES) * BATCH + side_by_side
    count += BATCHES_OF_LOAD * BATCH_OF_LOAD + sum(SIZES) + PACED_BATCHES * BATCH
    count += sum(2 * size * _pairs(harness, pairs) for size, (pairs, _) in UNREAD_SIZES.items())
    on_posts = [
        (kind, Target("post", FIRST_ID + post), actor)
        for kind, post, actor in load_reactions(count)
    ]
    harness.add_posts({VIRAL_POST.id, *(target.id for _, target, _ in on_posts)})
    of_one_author = [
        (kind, Target("post", 3 * FIRST_ID + post), actor)
        for kind, post, actor in load_reactions(2 * BATCH * _pairs(harness, BATCHES_OF_ONE_AUTHOR))
    ]
    harness.add_posts({target.id for _, target, _ in of_one_author}, authors=1)
    viral = harness.scale(BATCHES_OF_FOLLOWS) * BATCH
    follows = _by_many(FOLLOW, FOLLOWED_USER, viral + sum(SIZES))
    likes = _by_many(LIKE, VIRAL_POST, viral + side_by_side)

    made = sorted(
        {(*target, kind.name) for kind, target, _ in (*on_posts, *of_one_author, *follows, *likes)}
    )
    counters.run_in_transaction(lambda cursor: counters.lock_targets(cursor, made))
    mysql.write(exact_upsert.COPY_COUNTERS)

    events, follow_events, like_events = _accept(on_posts), _accept(follows), _accept(likes)
    mixed = chain.from_iterable(zip(events, follow_events, strict=False))
    samples = [_take(mixed, size) for size in SIZES]
    statements = [count_statements(partial(persist.save, sample)) for sample in samples]
    load = _load_mysql(_take(events, BATCHES_OF_LOAD * BATCH_OF_LOAD))
    four = _side_by_side(
        "consumers side by side", _take(events, side_by_side), Goal("at least", 1.6, "ratio")
    )
    together = [
        four,
        _side_by_side("consumers of one viral post", _take(like_events, side_by_side)),
        _pace(_take(events, PACED_BATCHES * BATCH), four.value),
    ]
    mysql.write(unread_rows.render_new(range(1, 501)))
    unread_counters = [
        figure
        for size, (pairs, goal) in UNREAD_SIZES.items()
        for figure in _with_unread(
            f"consumer with the unread counter, batches of {size}",
            _split(_take(events, 2 * size * _pairs(harness, pairs)), size),
            goal,
        )
    ]
    unread_counters += _with_unread(
        "  of posts of one author, batches of 1000", _split([*_accept(of_one_author)], BATCH)
    )
    spread, followed, liked = _race([*events]), _race([*follow_events]), _race([*like_events])
    _check_all_is_saved(len(on_posts) + len(of_one_author) + len(follows) + len(likes))
    return [
        Figure(
            f"consumer, batches of {REACTIONS.batch_size}",
            spread.ours,
            "events/s",
            goal=Goal("at least", 20_000),
        ),
        *_beside("consumer", spread),
        *_beside("follows of one viral user", followed, 40_000),
        *_beside("likes of one viral post", liked, 40_000),
        *together,
        *unread_counters,
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
    `make capacity` uses all figures."""
    before, batches = mysql_load(), iter(events)
    while batch := _take(batches, BATCH_OF_LOAD):
        persist.save(batch)
    load = mysql_load() - before
    name = f"an event in batches of {BATCH_OF_LOAD}"
    return [
        Figure(f"{name}, CPU of MySQL", load.cpu_s / len(events) * 1e6, "us"),
        Figure("  redo log", load.redo_bytes / len(events), "bytes"),
        Figure("  binlog, which Binlog=off saves", load.binlog_bytes / len(events), "bytes"),
    ]


def _beside(name: str, race: Race, goal: float | None = None) -> list[Figure]:
    """Compare a race with its peers; ``goal``: events a second."""
    exact = Peer("exact upsert", race.exact)
    return [
        Figure(
            f"{name}, against row by row",
            race.ours,
            "events/s",
            Peer("row by row", race.common),
            Goal("at least", goal) if goal else Goal("at least", 5, "ratio"),
        ),
        Figure(
            "  against a bulk upsert of rows, log, counters",
            race.ours,
            "events/s",
            exact,
            Goal("at least", 0.6, "ratio"),
        ),
        Figure(
            "  against a bulk upsert of rows alone",
            race.ours,
            "events/s",
            Peer("bulk upsert", race.bare),
        ),
        *(
            Figure(
                f"  CPU an event, {process}",
                seconds / race.events * 1e6,
                "us",
                Peer("exact upsert", of_exact / race.events * 1e6),
            )
            for process, seconds, of_exact in zip(
                Cpu._fields, race.cpu, race.exact_cpu, strict=True
            )
        ),
        *_describe(race),
    ]


def _describe(race: Race) -> list[Figure]:
    """Return how long Python waits for each part of an event, with its calls and rows in a batch.
    Redis is waited for by another thread, beside MySQL."""
    of_batch = BATCH / race.events
    parts = sorted(race.parts.by_name.items(), key=lambda pair: -pair[1].took_s)
    return [
        Figure(
            f"    {name} ({part.calls * of_batch:.0f} calls, {part.rows * of_batch:.0f} rows)",
            part.took_s / race.events * 1e6,
            "us",
        )
        for name, part in parts
    ] + [
        Figure(
            "    Python, and waiting for the thread that applies commits",
            race.parts.python_s / race.events * 1e6,
            "us",
        ),
        Figure("    besides, CPU to read its message", race.codec_s / race.events * 1e6, "us"),
    ]


def _side_by_side(name: str, events: Sequence[ReactionEvent], goal: Goal | None = None) -> Figure:
    """Compare consumers in processes of their own with one such process."""
    saves = [partial(_save, batch) for batch in _split(events, BATCH)]
    half = len(saves) // 2
    single, four = play(saves[:half], workers=1), play(saves[half:])
    peer = Peer("one", single.tally.rate * BATCH)
    return Figure(f"{WORKERS} {name}", four.tally.rate * BATCH, "events/s", peer, goal)


def _pace(events: Sequence[ReactionEvent], unpaced_per_s: float) -> Figure:
    """Measure consumers in processes of their own that share a rate of saving, half of theirs
    without one. The last batch of the measured ones is not paid yet when it is saved."""
    rate = Peer("the rate", round(unpaced_per_s / 2))
    with mock.patch.dict(os.environ, {"PLAZA_SAVED_ROWS_PER_S": str(rate.value)}):
        save_rate.save_settings.cache_clear()
        tally = play([partial(_save, batch) for batch in _split(events, BATCH)]).tally
    save_rate.save_settings.cache_clear()
    measured = PACED_BATCHES - WORKERS  # without the first one of each process
    return Figure(
        f"{WORKERS} consumers at a rate of saving",
        tally.rate * BATCH * (measured - 1) / measured,
        "events/s",
        rate,
        Goal("at most", 1, "ratio"),
    )


def _pairs(harness: Harness, pairs: int) -> int:
    return max(2, harness.scale(pairs))


def _with_unread(
    name: str, batches: Sequence[Sequence[ReactionEvent]], goal: Goal | None = None
) -> list[Figure]:
    """Save batches in turns without and with the unread counter, each in one transaction."""
    took_s, used = [0.0, 0.0], [Cpu(), Cpu()]
    events = [0, 0]
    for number, batch in enumerate(batches):
        notifies = number % 2
        switch_state.follow(Switches(notifications_stopped=notifies == 0))
        began = cpu()
        with paused_collection():
            took_s[notifies] += time_s(partial(persist.save, batch))
        used[notifies] += cpu() - began
        events[notifies] += len(batch)
    switch_state.follow(Switches())
    rates = [count / seconds for count, seconds in zip(events, took_s, strict=True)]
    return [
        Figure(name, rates[1], "events/s", Peer("without", rates[0]), goal),
        *(
            Figure(
                f"  CPU an event, {process}",
                with_unread / events[1] * 1e6,
                "us",
                Peer("without", without / events[0] * 1e6),
            )
            for process, without, with_unread in zip(Cpu._fields, *used, strict=True)
        ),
    ]


def _save(batch: Sequence[ReactionEvent]) -> bool:
    with paused_collection():
        while True:
            with suppress(Busy):  # its turn is later; SQS would deliver it again
                persist.save(batch)
                return True


def _by_many(kind: Kind, target: Target, count: int) -> list[Reaction]:
    return [(kind, target, FIRST_ID + actor) for actor in range(1, count + 1)]


def _race(events: Sequence[ReactionEvent]) -> Race:
    """Run the three in turns, so that they share the machine's fast and slow moments: four
    transactions of each at a time, as many as the consumer gets in a batch of the queue."""
    gc.collect()
    gc.freeze()  # a Lambda has only its own batch in memory: the others are not collected
    parts, common_s, bare_s, exact_s, codec_s = Parts(), 0.0, 0.0, 0.0, 0.0
    used, used_exact = Cpu(), Cpu()
    for batch in _split(events, BATCHES_AT_ONCE * BATCH):
        transactions = _split(batch, BATCH)
        common_s += _time_all(row_by_row.save, transactions)
        began = cpu()
        with parts.record(), paused_collection():
            persist.save(batch)
        between = cpu()
        exact_s += _time_all(exact_upsert.save, transactions)
        used, used_exact = used + (between - began), used_exact + (cpu() - between)
        bare_s += _time_all(bulk_upsert.save, transactions)
        codec_s += cpu_ms(partial(_READ_ONLY, _records(batch), CONTEXT)) / 1000
    gc.unfreeze()
    count = len(events)
    return Race(
        count,
        count / common_s,
        count / bare_s,
        count / exact_s,
        parts,
        used,
        used_exact,
        codec_s,
    )


def _records(events: Sequence[ReactionEvent]) -> dict[str, Any]:
    """Return what Lambda passes to the function of the consumer."""
    return {
        "Records": [
            {
                "messageId": f"{number:036}",
                "receiptHandle": "a" * 200,
                "body": REACTIONS.encode(event),
                "attributes": {
                    "ApproximateReceiveCount": "1",
                    "SentTimestamp": "1700000000000",
                    "ApproximateFirstReceiveTimestamp": "1700000000100",
                },
                "messageAttributes": {
                    "request_id": {"stringValue": event.request_id, "dataType": "String"}
                },
                "eventSource": "aws:sqs",
            }
            for number, event in enumerate(events)
        ]
    }


def _time_all(save: Save, transactions: Sequence[Sequence[ReactionEvent]]) -> float:
    return sum(time_s(partial(_commit, save, transaction)) for transaction in transactions)


def _accept(reactions: Sequence[Reaction]) -> Iterator[ReactionEvent]:
    """Return the events of ``reactions``, accepted by Redis and not saved."""
    unique = list(dict.fromkeys((kind, target) for kind, target, _ in reactions))
    for start in range(0, len(unique), _AT_ONCE):
        hydration.hydrate(unique[start : start + _AT_ONCE])
    events = []
    for kind, target, actor in reactions:
        decision = redis_gate.gate(kind, target, actor, True, "bench", None)
        if decision.code == "UNKNOWN":  # more likers than are loaded, from an earlier round
            expected = mysql_rows.read_state(kind, target, actor)
            decision = redis_gate.gate(kind, target, actor, True, "bench", expected)
        if decision.code != "CHANGED":
            raise CommandError(f"the gate returned {decision.code}")
        key = ReactionKey(*target, kind.name, actor)
        request_id = f"JKJaXm{actor:010}="  # as long as API Gateway's
        events.append(ReactionEvent(key, True, decision.version_us, request_id))
    return iter(events)


def _split(events: Sequence[ReactionEvent], size: int) -> list[Sequence[ReactionEvent]]:
    return [events[start : start + size] for start in range(0, len(events), size)]


def _take(events: Iterator[ReactionEvent], count: int) -> list[ReactionEvent]:
    return list(islice(events, count))


def _commit(save: Save, events: Sequence[ReactionEvent]) -> None:
    mysql.run_in_transaction(lambda cursor: save(cursor, events))


def _check_all_is_saved(count: int) -> None:
    rows = mysql.fetch_all(
        "SELECT (SELECT COUNT(*) FROM reaction WHERE target_id >= %s AND state = 1),"
        " (SELECT SUM(total) FROM counter WHERE target_id >= %s)",
        (FIRST_ID, FIRST_ID),
    )
    pending = redis.execute("KEYS", "*:outbox")
    if rows != [(count, count)] or pending:
        raise CommandError(
            f"{count} events made rows, totals {rows}; {len(pending)} targets pending"
        )

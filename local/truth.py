"""The table of truth: what Redis, the counters, the rows and the log say, and where they differ.

Reading it takes a fixed number of SQL statements in one snapshot, one SCAN and a few pipelines
of Redis, whatever is in there. Comparing is arithmetic. All of it is exact only while the
system is quiet; what is on its way is told as pending.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import redis
from pymysql.cursors import SSCursor

from local.servers import connect_mysql
from plaza.reactions import KINDS, Target
from plaza.reactions.redis_reactions import keys_of

Counted = tuple[str, Target]  # a kind of reaction and what it is given to

_BATCH = 500
_KEY = re.compile(r"\{\d+\}:(\w+):(\w+):(\d{1,19}):(meta|pending)", re.ASCII)
_DIRTY = re.compile(r"\{\d+\}:dirty", re.ASCII)
_LOG_DIFFERS = """
    SELECT n.target_type, n.target_id, n.kind, n.actor_id, l.state, n.ver, r.state, r.ver
    FROM (SELECT target_type, target_id, kind, actor_id, MAX(ver) AS ver FROM reaction_log
          GROUP BY target_type, target_id, kind, actor_id) AS n
    JOIN reaction_log AS l USING (target_type, target_id, kind, actor_id, ver)
    LEFT JOIN reaction AS r USING (target_type, target_id, kind, actor_id)
    WHERE r.ver IS NULL OR r.ver <> n.ver OR r.state <> l.state"""
_ROW_UNLOGGED = """
    SELECT r.target_type, r.target_id, r.kind, r.actor_id, NULL, NULL, r.state, r.ver
    FROM reaction AS r LEFT JOIN reaction_log AS l USING (target_type, target_id, kind, actor_id)
    WHERE l.ver IS NULL"""


class Difference(NamedTuple):
    """Two that should say the same and don't: ``of`` what, and what each says."""

    of: str
    said: str

    def __str__(self) -> str:
        return f"{self.of}: {self.said}"


@dataclass(slots=True)
class Record:
    """What MySQL says, at one instant.

    ``on``: who is on, as actor -> version. ``counters``: totals by kind. ``received``: what
    users received, by kind. ``log``: how many facts were ever saved.
    """

    on: dict[Counted, dict[int, int]] = field(default_factory=dict)
    counters: dict[Target, dict[str, int]] = field(default_factory=dict)
    authors: dict[Target, int] = field(default_factory=dict)
    received: dict[int, dict[str, int]] = field(default_factory=dict)
    log: int = 0
    log_differences: list[Difference] = field(default_factory=list)


@dataclass(slots=True)
class Hot:
    """What Redis says of one target and kind; ``total`` is None when only an outbox is there.

    ``pending``: actor -> (on, version). ``recent``: actor -> version, everybody if ``complete``.
    """

    total: int | None = None
    complete: bool = False
    pending: dict[int, tuple[bool, int]] = field(default_factory=dict)
    recent: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Cache:
    """What Redis says. ``dirty``: what its shards hold for the sweeper, as <kind>:<target>."""

    hot: dict[Counted, Hot] = field(default_factory=dict)
    dirty: set[str] = field(default_factory=set)

    @property
    def pending(self) -> int:
        """How many changes wait in all outboxes."""
        return sum(len(hot.pending) for hot in self.hot.values())


@dataclass(frozen=True, slots=True)
class Truth:
    """The table of truth. Clean: all agree and nothing is on its way or lost.

    ``drift`` counts the totals, ``others`` everything else that differs. ``queued`` and ``dead``
    count messages by queue. ``totals`` is, by kind, (rows, counters, and of the targets that
    Redis holds: Redis, counters).
    """

    targets: int
    hot: int
    drift: int
    others: int
    pending: int
    dirty: int
    accepted: int
    persisted: int
    queued: Mapping[str, int]
    dead: Mapping[str, int]
    totals: Mapping[str, tuple[int, int, int, int]]
    differences: Sequence[Difference]

    @property
    def quiet(self) -> bool:
        """Nothing is on its way."""
        return not (self.pending or self.dirty or any(self.queued.values()))

    @property
    def clean(self) -> bool:
        """Quiet, all agree, and nothing was given up."""
        return self.quiet and not (self.differences or any(self.dead.values()))

    def to_json(self) -> dict[str, Any]:
        """For a machine; the first 20 differences."""
        return {
            "clean": self.clean,
            "targets": self.targets,
            "hot": self.hot,
            "drift": self.drift,
            "others": self.others,
            "pending": self.pending,
            "dirty": self.dirty,
            "queued": sum(self.queued.values()),
            "dead": sum(self.dead.values()),
            "accepted": self.accepted,
            "persisted": self.persisted,
            "totals": {
                kind: dict(zip(("rows", "counters", "hot", "hot_counters"), all_, strict=True))
                for kind, all_ in self.totals.items()
            },
            "differences": [str(difference) for difference in self.differences[:20]],
        }


def read_record(mysql_url: str) -> Record:
    """What MySQL says. Five statements in one snapshot. Raises pymysql.err.MySQLError."""
    record = Record()
    columns = ", ".join(kind.total for kind in KINDS.values())
    received = ", ".join(kind.received for kind in KINDS.values())
    with closing(connect_mysql(mysql_url)) as connection, connection.cursor(SSCursor) as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        cursor.execute(
            "SELECT kind, target_type, target_id, actor_id, ver FROM reaction WHERE state = 1"
        )
        for kind, target_type, target_id, actor_id, ver in cursor:
            target = Target(target_type, target_id)
            record.on.setdefault((kind, target), {})[actor_id] = ver
        cursor.execute(
            f"SELECT target_type, target_id, author_id, {columns} FROM content_counter"  # noqa: S608
            " LEFT JOIN content ON content_type = target_type AND content_id = target_id"
        )
        for target_type, target_id, author_id, *totals in cursor:
            target = Target(target_type, target_id)
            record.counters[target] = dict(zip(KINDS, totals, strict=True))
            if author_id is not None:
                record.authors[target] = author_id
        cursor.execute(f"SELECT user_id, {received} FROM user_counter")  # noqa: S608
        for user_id, *totals in cursor:
            record.received[user_id] = dict(zip(KINDS, totals, strict=True))
        cursor.execute("SELECT COUNT(*) FROM reaction_log")
        ((record.log,),) = cursor.fetchall()
        cursor.execute(f"{_LOG_DIFFERS} UNION ALL {_ROW_UNLOGGED}")
        for target_type, target_id, kind, actor_id, *versions in cursor:
            record.log_differences.append(
                Difference(
                    f"{kind} {target_type}:{target_id} by {actor_id}",
                    "log {}@{}, row {}@{}".format(*versions),
                )
            )
        cursor.execute("ROLLBACK")
    return record


def read_cache(redis_url: str) -> Cache:
    """What Redis says. One SCAN and some pipelines. Raises redis.exceptions.RedisError."""
    cache = Cache()
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        found, dirty = set(), set()
        for key in client.scan_iter(count=1000):
            if _DIRTY.fullmatch(key):
                dirty.add(key)
            elif (match := _KEY.fullmatch(key)) and match[1] in KINDS:
                found.add((match[1], Target(match[2], int(match[3]))))
        for batch in _batches(sorted(found)):
            pipe = client.pipeline(transaction=False)
            for kind, target in batch:
                keys = keys_of(kind, target)
                pipe.hmget(keys.meta, ["total", "complete"])
                pipe.hgetall(keys.pending)
                pipe.zrange(keys.recent, 0, -1, withscores=True)
            answers = iter(pipe.execute())
            for counted in batch:
                total, complete = next(answers)
                pending = {int(a): _read_entry(entry) for a, entry in next(answers).items()}
                recent = {int(actor): int(ver) for actor, ver in next(answers)}
                if total is not None or pending:
                    cache.hot[counted] = Hot(
                        None if total is None else int(total), complete == "1", pending, recent
                    )
        for keys_of_shards in _batches(sorted(dirty)):
            pipe = client.pipeline(transaction=False)
            for key in keys_of_shards:
                pipe.zrange(key, 0, -1)
            for members in pipe.execute():
                cache.dirty.update(members)
    return cache


def compare(record: Record, cache: Cache, depths: Mapping[str, tuple[int, int]]) -> Truth:
    """Hold all of it against each other. ``depths``: queue -> (messages waiting, in work)."""
    drift = find_drift(record, cache)
    others = [
        *find_wrong_lists(record, cache),
        *find_wrong_authors(record),
        *record.log_differences,
        *find_wrong_outboxes(cache),
    ]
    queued = {name: sum(depth) for name, depth in depths.items()}
    targets = {target for _, target in [*record.on, *cache.hot]} | set(record.counters)
    waiting = sum(
        not on or record.on.get(counted, {}).get(actor_id) != ver
        for counted, hot in cache.hot.items()
        for actor_id, (on, ver) in hot.pending.items()
    )
    return Truth(
        targets=len(targets),
        hot=sum(hot.total is not None for hot in cache.hot.values()),
        drift=len(drift),
        others=len(others),
        pending=cache.pending,
        dirty=len(cache.dirty),
        accepted=record.log + waiting,
        persisted=record.log,
        queued={name: depth for name, depth in queued.items() if not name.endswith("_dlq")},
        dead={name: depth for name, depth in queued.items() if name.endswith("_dlq")},
        totals={kind: _add_up(kind, record, cache) for kind in KINDS},
        differences=[*drift, *others],
    )


def find_drift(record: Record, cache: Cache) -> list[Difference]:
    """Where rows, counter and Redis (if it holds the target, with nothing pending) differ."""
    counted = {(kind, target) for target in record.counters for kind in KINDS}
    differences = []
    for kind, target in sorted(counted | set(record.on) | set(cache.hot)):
        rows = len(record.on.get((kind, target), ()))
        counter = record.counters.get(target, {}).get(kind, 0)
        hot = cache.hot.get((kind, target), Hot())
        total = hot.total if not hot.pending else None
        if counter != rows or (total is not None and total != rows):
            shown = "not there" if hot.total is None else str(hot.total)
            shown += f" with {len(hot.pending)} pending" if hot.pending else ""
            differences.append(
                Difference(f"{kind} {target}", f"Redis {shown}, counter {counter}, rows {rows}")
            )
    return differences


def find_wrong_lists(record: Record, cache: Cache) -> Iterator[Difference]:
    """Who is in Redis as on and isn't, or isn't and should be."""
    for (kind, target), hot in sorted(cache.hot.items()):
        if hot.total is None or hot.pending:
            continue
        on = record.on.get((kind, target), {}).keys()
        if extra := sorted(hot.recent.keys() - on):
            yield Difference(f"{kind} {target}", f"in Redis and not in the rows: {_some(extra)}")
        if hot.complete and (missing := sorted(on - hot.recent.keys())):
            yield Difference(f"{kind} {target}", f"in the rows and not in Redis: {_some(missing)}")


def find_wrong_authors(record: Record) -> Iterator[Difference]:
    """Users whose received totals are not the sum of what their content has."""
    sums: dict[int, dict[str, int]] = {
        user_id: dict.fromkeys(KINDS, 0) for user_id in record.received
    }
    for target, author_id in record.authors.items():
        of_author = sums.setdefault(author_id, dict.fromkeys(KINDS, 0))
        for kind, total in record.counters[target].items():
            of_author[kind] += total
    for user_id, of_user in sorted(sums.items()):
        received = record.received.get(user_id, dict.fromkeys(KINDS, 0))
        for kind, total in of_user.items():
            if received[kind] != total:
                yield Difference(
                    f"{kind}s received by user {user_id}",
                    f"counter {received[kind]}, sum over their content {total}",
                )


def find_wrong_outboxes(cache: Cache) -> Iterator[Difference]:
    """Targets with pending changes that the sweeper would not find."""
    for (kind, target), hot in sorted(cache.hot.items()):
        if hot.pending and f"{kind}:{target}" not in cache.dirty:
            yield Difference(f"{kind} {target}", f"{len(hot.pending)} pending, and not dirty")


def _add_up(kind: str, record: Record, cache: Cache) -> tuple[int, int, int, int]:
    held = {
        t: hot.total for (k, t), hot in cache.hot.items() if k == kind and hot.total is not None
    }
    return (
        sum(len(actors) for (k, _), actors in record.on.items() if k == kind),
        sum(totals[kind] for totals in record.counters.values()),
        sum(held.values()),
        sum(record.counters.get(target, {}).get(kind, 0) for target in held),
    )


def _read_entry(entry: str) -> tuple[bool, int]:
    state, ver, _ = entry.split(":")
    return state == "1", int(ver)


def _some(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:5]))
    return shown if len(numbers) <= 5 else f"{shown} and {len(numbers) - 5} more"


def _batches(items: Sequence[Any]) -> Iterator[list[Any]]:
    rest = iter(items)
    while batch := list(islice(rest, _BATCH)):
        yield batch

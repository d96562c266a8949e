"""What MySQL and Redis say, read for the audit: one snapshot, one SCAN and a few pipelines.

How often they are asked does not depend on what is in there.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from pymysql.cursors import SSCursor

from local.servers import connect_mysql, connect_redis
from plaza.counters import ContentCounter, UserCounter
from plaza.counters.counters import USER_COLUMNS
from plaza.counters.mysql_counters import CONTENT_COLUMNS
from plaza.reactions import KINDS, Target
from plaza.reactions.redis_reactions import keys_of

Counted = tuple[str, Target]  # a kind of reaction and what it is given to

_BATCH = 500
_REACTIONS = re.compile(r"\{\d+\}:(\w+):(\w+):(\d{1,19}):(?:meta|pending)", re.ASCII)
_COUNTERS = re.compile(r"\{\d+\}:(user|post):(\d{1,19}):(counters|claims|comments)", re.ASCII)
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

    ``on``: who is on, as actor -> version. ``totals`` and ``users``: the counters of targets and
    of users. ``authors``: whose content is, deleted or not; ``posts``, by author, and
    ``comments``, by post, count what is live of it. ``log``: how many facts were ever saved.
    """

    on: dict[Counted, dict[int, int]] = field(default_factory=dict)
    totals: dict[Target, ContentCounter] = field(default_factory=dict)
    users: dict[int, UserCounter] = field(default_factory=dict)
    authors: dict[Target, int] = field(default_factory=dict)
    posts: Counter[int] = field(default_factory=Counter)
    comments: Counter[int] = field(default_factory=Counter)
    log: int = 0
    log_differences: list[Difference] = field(default_factory=list)

    def total(self, target: Target, column: str) -> int:
        """What a target's counter says; without one, nothing was counted."""
        counter = self.totals.get(target)
        return counter.totals[column] if counter else 0


@dataclass(slots=True)
class Hot:
    """What Redis says of one target and kind; ``total`` is None when only an outbox is there.

    ``pending``: actor -> (on, version). ``recent``: actor -> version, everybody if ``complete``.
    """

    total: int | None = None
    complete: bool = False
    pending: dict[int, tuple[bool, int]] = field(default_factory=dict)
    recent: dict[int, int] = field(default_factory=dict)


class Projected(NamedTuple):
    """A value that Redis holds of a counter in MySQL, as it was at version ``ver`` of that."""

    ver: int
    value: str


@dataclass(slots=True)
class Cache:
    """What Redis says.

    ``dirty``: what its shards hold for the sweeper, as <kind>:<target>. ``users``, and
    ``comments`` by post: projections of counters. ``claims``: user -> what they claimed.
    """

    hot: dict[Counted, Hot] = field(default_factory=dict)
    dirty: set[str] = field(default_factory=set)
    users: dict[int, Projected] = field(default_factory=dict)
    comments: dict[int, Projected] = field(default_factory=dict)
    claims: dict[int, list[str]] = field(default_factory=dict)

    @property
    def pending(self) -> int:
        """How many changes wait in all outboxes."""
        return sum(len(hot.pending) for hot in self.hot.values())


@dataclass(slots=True)
class Found:
    """The keys of Redis that concern an audit; the others are by id."""

    reactions: set[Counted] = field(default_factory=set)
    dirty: set[str] = field(default_factory=set)
    users: dict[int, str] = field(default_factory=dict)
    comments: dict[int, str] = field(default_factory=dict)
    claims: dict[int, str] = field(default_factory=dict)

    def take(self, key: str) -> None:
        """Keep ``key`` if it is one of those."""
        if _DIRTY.fullmatch(key):
            self.dirty.add(key)
        elif match := _REACTIONS.fullmatch(key):
            if match[1] in KINDS:
                self.reactions.add((match[1], Target(match[2], int(match[3]))))
        elif match := _COUNTERS.fullmatch(key):
            keys = {
                ("user", "counters"): self.users,
                ("user", "claims"): self.claims,
                ("post", "comments"): self.comments,
            }
            keys.get((match[1], match[3]), {})[int(match[2])] = key


def read_record(mysql_url: str) -> Record:
    """What MySQL says. Six statements in one snapshot. Raises pymysql.err.MySQLError."""
    record = Record()
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
            f"SELECT target_type, target_id, ver, {', '.join(CONTENT_COLUMNS)}"  # noqa: S608
            " FROM content_counter"
        )
        for target_type, target_id, ver, *totals in cursor:
            counter = ContentCounter(dict(zip(CONTENT_COLUMNS, totals, strict=True)), ver)
            record.totals[Target(target_type, target_id)] = counter
        cursor.execute(f"SELECT user_id, {', '.join(USER_COLUMNS)}, ver FROM user_counter")  # noqa: S608
        for user_id, *totals in cursor:
            record.users[user_id] = UserCounter(*totals)
        cursor.execute(
            "SELECT content_type, content_id, author_id, parent_id, deleted_at IS NULL FROM content"
        )
        for content_type, content_id, author_id, parent_id, live in cursor:
            record.authors[Target(content_type, content_id)] = author_id
            if live and content_type == "post":
                record.posts[author_id] += 1
            elif live and content_type == "comment" and parent_id is not None:
                record.comments[parent_id] += 1
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


def read_cache(redis_url: str, *, cluster: bool = False) -> Cache:
    """What Redis says. One SCAN and some pipelines. Raises redis.exceptions.RedisError."""
    with connect_redis(redis_url, cluster=cluster) as client:
        found = Found()
        for key in client.scan_iter(count=1000):
            found.take(key)
        dirty = _read_members(client, found.dirty)
        claims = _read_members(client, found.claims.values())
        return Cache(
            hot=_read_hot(client, found.reactions),
            dirty={member for members in dirty.values() for member in members},
            users=_read_projections(client, found.users),
            comments=_read_projections(client, found.comments),
            claims={user_id: claims[key] for user_id, key in found.claims.items() if key in claims},
        )


def _read_hot(client: Any, reactions: set[Counted]) -> dict[Counted, Hot]:
    hot = {}
    for batch in _batches(sorted(reactions)):
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
                held = None if total is None else int(total)
                hot[counted] = Hot(held, complete == "1", pending, recent)
    return hot


def _read_projections(client: Any, keys: dict[int, str]) -> dict[int, Projected]:
    """What is under ``keys``, by id. One without a value is a fence and says nothing."""
    held = {}
    for batch in _batches(sorted(keys)):
        pipe = client.pipeline(transaction=False)
        for id_ in batch:
            pipe.hmget(keys[id_], ["ver", "value"])
        for id_, (ver, value) in zip(batch, pipe.execute(), strict=True):
            if value is not None:
                held[id_] = Projected(int(ver), value)
    return held


def _read_members(client: Any, keys: Collection[str]) -> dict[str, list[str]]:
    """What is in each of some sorted sets; those that went meanwhile are left out."""
    held: dict[str, list[str]] = {}
    for batch in _batches(sorted(keys)):
        pipe = client.pipeline(transaction=False)
        for key in batch:
            pipe.zrange(key, 0, -1)
        held |= {
            key: members for key, members in zip(batch, pipe.execute(), strict=True) if members
        }
    return held


def _read_entry(entry: str) -> tuple[bool, int]:
    state, ver, _ = entry.split(":")
    return state == "1", int(ver)


def _batches(items: Sequence[Any]) -> Iterator[list[Any]]:
    rest = iter(items)
    while batch := list(islice(rest, _BATCH)):
        yield batch

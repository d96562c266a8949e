"""What MySQL and Redis say, read for the audit: one snapshot, one SCAN and a few pipelines.

How often they are asked does not depend on what is in there.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from typing import Any, NamedTuple

from pymysql.cursors import SSCursor

from local.days import Calendar, CheckinKeys, read_calendars, read_days
from local.orders import OrderEntry, OrderKeys, OrderRecord, read_entries, read_orders
from local.servers import connect_mysql, connect_redis
from local.vouchers import Sale, Sold, read_sales, read_vouchers
from plaza import vote_log
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
_SALE = re.compile(r"\{\d+\}:voucher:(\d{1,19}):state", re.ASCII)
_ROLLED_UP = """
    (SELECT COALESCE(MAX(seq), 0) FROM reaction_log)
    <= (SELECT COALESCE(MAX(seq), 0) FROM watermark WHERE name = 'votes')"""
_VOTES_DIFFER = """
    SELECT 'votes', content_type, content_id, votes, COALESCE(like_total, 0)
    FROM content LEFT JOIN content_counter
    ON target_type = content_type AND target_id = content_id
    WHERE content_type = 'review' AND votes <> COALESCE(like_total, 0)"""
# Of a younger post, all likes are in hours that post_hour keeps, unless one says that it is older.
_HOURS_DIFFER = """
    SELECT 'hours', content_type, content_id, COALESCE(net, 0), COALESCE(like_total, 0)
    FROM content AS c LEFT JOIN content_counter
    ON target_type = content_type AND target_id = content_id
    LEFT JOIN (SELECT post_id, SUM(net) AS net FROM post_hour GROUP BY post_id) AS hours
    ON post_id = content_id
    WHERE content_type = 'post' AND created_at > UTC_TIMESTAMP(6) - INTERVAL 160 HOUR
    AND NOT EXISTS (SELECT 1 FROM reaction AS r
        WHERE r.target_type = 'post' AND r.target_id = content_id AND kind = 'like'
        AND r.ver < TIMESTAMPDIFF(MICROSECOND, '1970-01-01', c.created_at))
    AND COALESCE(net, 0) <> COALESCE(like_total, 0)"""


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
    ``rolled_up_differences``: votes of reviews and hours of posts that are not their likes, looked
    for only if all of the log was rolled up. ``days``: of check-ins, by user.
    """

    on: dict[Counted, dict[int, int]] = field(default_factory=dict)
    totals: dict[Target, ContentCounter] = field(default_factory=dict)
    users: dict[int, UserCounter] = field(default_factory=dict)
    authors: dict[Target, int] = field(default_factory=dict)
    posts: Counter[int] = field(default_factory=Counter)
    comments: Counter[int] = field(default_factory=Counter)
    log: int = 0
    log_differences: list[Difference] = field(default_factory=list)
    rolled_up_differences: list[Difference] = field(default_factory=list)
    vouchers: dict[int, Sold] = field(default_factory=dict)
    orders: OrderRecord = field(default_factory=OrderRecord)
    days: dict[int, set[date]] = field(default_factory=dict)

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
    ``comments`` by post: projections of counters. ``claims``: user -> what they claimed. ``sales``
    are by voucher; ``calendars`` by user, and ``checkins_dirty`` are users for the sweeper.
    """

    hot: dict[Counted, Hot] = field(default_factory=dict)
    dirty: set[str] = field(default_factory=set)
    users: dict[int, Projected] = field(default_factory=dict)
    comments: dict[int, Projected] = field(default_factory=dict)
    claims: dict[int, list[str]] = field(default_factory=dict)
    sales: dict[int, Sale] = field(default_factory=dict)
    orders: list[OrderEntry] = field(default_factory=list)
    calendars: dict[int, Calendar] = field(default_factory=dict)
    checkins_dirty: set[str] = field(default_factory=set)

    @property
    def pending(self) -> int:
        """How many changes wait in all outboxes, check-ins and orders too."""
        return (
            sum(len(hot.pending) for hot in self.hot.values())
            + sum(calendar.pending for calendar in self.calendars.values())
            + sum(sale.pending for sale in self.sales.values())
        )


@dataclass(slots=True)
class Found:
    """The keys of Redis that concern an audit; the others are by id."""

    reactions: set[Counted] = field(default_factory=set)
    dirty: set[str] = field(default_factory=set)
    users: dict[int, str] = field(default_factory=dict)
    comments: dict[int, str] = field(default_factory=dict)
    claims: dict[int, str] = field(default_factory=dict)
    sales: set[int] = field(default_factory=set)
    orders: OrderKeys = field(default_factory=OrderKeys)
    checkins: CheckinKeys = field(default_factory=CheckinKeys)

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
        elif match := _SALE.fullmatch(key):
            self.sales.add(int(match[1]))
        elif not self.orders.take(key):
            self.checkins.take(key)


def read_record(mysql_url: str, *, archives: bool = False) -> Record:
    """What MySQL says, in one snapshot, and the ``archives`` of the vote log that it is part of.

    The number of statements does not depend on what is there. Raises pymysql.err.MySQLError, and
    of archives ObjectsDown and ArchiveCorrupt.
    """
    record = Record()
    with closing(connect_mysql(mysql_url)) as connection, connection.cursor(SSCursor) as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        # First of all: from here on no day of the log leaves MySQL.
        record.log = vote_log.count_facts(cursor, archives=archives)
        for found in vote_log.find_contradictions(cursor, archives=archives):
            record.log_differences.append(
                Difference(
                    f"{found.kind} {found.target} by {found.actor_id}",
                    f"log {_show(found.log)}, row {_show(found.row)}",
                )
            )
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
        cursor.execute(
            f"{_VOTES_DIFFER} AND {_ROLLED_UP} UNION ALL {_HOURS_DIFFER} AND {_ROLLED_UP}"
        )
        for name, content_type, content_id, rolled_up, likes in cursor:
            of = f"{name} of {content_type}:{content_id}"
            record.rolled_up_differences.append(
                Difference(of, f"rolled up {rolled_up}, likes {likes}")
            )
        record.vouchers = read_vouchers(cursor)
        record.orders = read_orders(cursor)
        record.days = read_days(cursor)
        cursor.execute("ROLLBACK")
    return record


def _show(said: tuple[int, int] | None) -> str:
    return "nothing" if said is None else f"{said[1]}@{said[0]}"


def read_cache(redis_url: str, *, cluster: bool = False) -> Cache:
    """What Redis says. One SCAN and some pipelines. Raises redis.exceptions.RedisError."""
    with connect_redis(redis_url, cluster=cluster) as client:
        found = Found()
        for key in client.scan_iter(count=1000):
            found.take(key)
        dirty = _read_members(client, found.dirty)
        claims = _read_members(client, found.claims.values())
        checkins_dirty = _read_members(client, found.checkins.dirty)
        return Cache(
            hot=_read_hot(client, found.reactions),
            dirty={member for members in dirty.values() for member in members},
            users=_read_projections(client, found.users),
            comments=_read_projections(client, found.comments),
            claims={user_id: claims[key] for user_id, key in found.claims.items() if key in claims},
            orders=read_entries(client, found.orders),
            sales=read_sales(client, sorted(found.sales)),
            calendars=read_calendars(client, found.checkins),
            checkins_dirty={user for users in checkins_dirty.values() for user in users},
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

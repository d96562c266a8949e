"""Read MySQL and Redis for the audit: one snapshot, one SCAN and a few pipelines.

The number of statements does not depend on the data. Keys, tables and Bloom filters are read
directly, without the product's scripts, so that a script can't hide its own errors.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from typing import Any, NamedTuple

from pymysql.cursors import SSCursor

from local.audit.checkins import Calendar, CheckinKeys, read_calendars, read_days
from local.audit.orders import OrderEntry, OrderKeys, OrderRecord, read_entries, read_orders
from local.audit.unread import UnreadCount, count_unread, find_wrong_unread
from local.audit.vouchers import SaleState, VoucherRow, read_sales, read_vouchers
from local.stack.servers import connect_mysql, connect_redis
from plaza.core.counters import TargetCounter, UserCounter
from plaza.core.counters.model import USER_COLUMNS
from plaza.core.reaction_log import recount
from plaza.core.reactions import KINDS, Target
from plaza.core.reactions.mysql_rows import VERSIONS_PER_EPOCH
from plaza.core.reactions.redis_keys import TargetKeys, keys_of
from plaza.social.shop_scores import ShopCounter

TargetKind = tuple[str, Target]  # a kind of reaction and its target

PROTOCOL = "2"
_BATCH = 500
_MAX_READS = 4  # of a target that changes while it is read
_REPLIES_PER_TARGET = 8
_REACTIONS = re.compile(r"\{\d+\}:(\w+):(\w+):(\d{1,19}):(?:meta|outbox|ahead)", re.ASCII)
_COUNTERS = re.compile(r"\{\d+\}:(user|post):(\d{1,19}):(counters|holds|comments)", re.ASCII)
_OUTBOX_INDEX_KEY = re.compile(r"\{\d+\}:outboxes", re.ASCII)
_SALE = re.compile(r"\{\d+\}:voucher:(\d{1,19}):sale", re.ASCII)
# Changes of counters by the commits after a version, by actor.
_SINCE = """
    SELECT item, l.actor_id, SUM(l.change_by) FROM JSON_TABLE(%s, '$[*]' COLUMNS (
        item INT PATH '$[0]', kind VARCHAR(16) CHARACTER SET ascii PATH '$[1]',
        target_type VARCHAR(16) CHARACTER SET ascii PATH '$[2]', target_id BIGINT PATH '$[3]',
        n BIGINT PATH '$[4]')) AS behind
    STRAIGHT_JOIN reaction_log AS l FORCE INDEX (PRIMARY) USING (target_type, target_id, kind)
    WHERE l.db_version > behind.n GROUP BY item, l.actor_id"""
# Each commit in the log since the counter's last version without one: its lowest and highest total,
# what its changes make of the total of the commit before, and the newest db_version. A correction
# of the counter skips a version, which has no rows, so what the log has before it is not compared.
_LOGGED_TOTALS = """
    SELECT kind, target_type, target_id, db_version, newest, lowest, highest, expected
    FROM (
        SELECT kind, target_type, target_id, db_version, lowest, highest,
        IF(LAG(db_version) OVER in_order = db_version - 1, LAG(highest) OVER in_order + added, NULL)
        AS expected, MAX(db_version) OVER counted AS newest,
        db_version - ROW_NUMBER() OVER in_order AS run,
        MAX(db_version) OVER counted - COUNT(*) OVER counted AS newest_run
        FROM (
            SELECT kind, target_type, target_id, db_version, MIN(total) AS lowest,
            MAX(total) AS highest, SUM(change_by) AS added FROM reaction_log
            GROUP BY kind, target_type, target_id, db_version) AS commits
        WINDOW counted AS (PARTITION BY kind, target_type, target_id),
        in_order AS (PARTITION BY kind, target_type, target_id ORDER BY db_version)
    ) AS chained
    WHERE run = newest_run AND (db_version = newest OR lowest <> highest OR lowest <> expected)"""
_ROLLED_UP = """
    (SELECT COALESCE(MAX(seq), 0) FROM reaction_log)
    <= (SELECT COALESCE(MAX(seq), 0) FROM watermark WHERE name = 'likes')"""
_REVIEW_LIKES_DIFFER = """
    SELECT 'review_likes', content_type, content_id, likes, COALESCE(total, 0)
    FROM content LEFT JOIN counter AS counted
    ON target_type = content_type AND target_id = content_id AND counted.kind = 'like'
    WHERE content_type = 'review' AND likes <> COALESCE(total, 0)"""
# post_hour has all likes of posts younger than 160 h, unless a like's version is before the post.
_HOURS_DIFFER = """
    SELECT 'hours', content_type, content_id, COALESCE(net, 0), COALESCE(total, 0)
    FROM content AS c LEFT JOIN counter AS counted
    ON target_type = content_type AND target_id = content_id AND counted.kind = 'like'
    LEFT JOIN (SELECT post_id, SUM(net) AS net FROM post_hour GROUP BY post_id) AS hours
    ON post_id = content_id
    WHERE content_type = 'post' AND created_at > UTC_TIMESTAMP(6) - INTERVAL 160 HOUR
    AND NOT EXISTS (SELECT 1 FROM reaction AS r
        WHERE r.target_type = 'post' AND r.target_id = content_id AND r.kind = 'like'
        AND r.version < TIMESTAMPDIFF(MICROSECOND, '1970-01-01', c.created_at))
    AND COALESCE(net, 0) <> COALESCE(total, 0)"""


_NO_COUNTER = TargetCounter()


class Difference(NamedTuple):
    """A subject whose stores differ, and their values as text."""

    subject: str
    details: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.details}"


@dataclass(slots=True)
class MysqlState:
    """MySQL's state at one instant.

    ``on`` and ``off``: active and inactive rows, as actor -> version. ``sorted``: sorted lists,
    as (actor, version, state). ``totals`` and ``users``: counters of targets and of users;
    ``epoch`` is added to versions of the former. ``since``: for targets of which Redis has an
    older version, actor -> change since then. ``changes``: sums of the log's changes, None
    unless all of the log is in MySQL. ``authors``: of content, and owners of targets of the
    app, deleted or not; ``posts`` by author and ``comments`` by post: numbers of live content.
    ``reviews`` and ``shops``: numbers and scores of live reviews by shop, and the counters of
    both. ``log``: number of distinct events. ``rolled_up_differences``: likes of reviews and
    hours of posts that are not their likes, checked only if the whole log is rolled up.
    ``spilled``: messages that SQS refused, by queue. ``days``: of check-ins, by user. ``unread
    counters``: their sums; ``unread_differences``: unread counters that are not what their rows
    say.
    """

    on: dict[TargetKind, dict[int, int]] = field(default_factory=dict)
    off: dict[TargetKind, dict[int, int]] = field(default_factory=dict)
    totals: dict[TargetKind, TargetCounter] = field(default_factory=dict)
    sorted: dict[TargetKind, set[tuple[int, ...]]] = field(default_factory=dict)
    epoch: int = 0
    since: dict[TargetKind, dict[int, int]] = field(default_factory=dict)
    changes: dict[TargetKind, int] | None = None
    users: dict[int, UserCounter] = field(default_factory=dict)
    authors: dict[Target, int | None] = field(default_factory=dict)
    posts: Counter[int] = field(default_factory=Counter)
    comments: Counter[int] = field(default_factory=Counter)
    reviews: dict[int, ShopCounter] = field(default_factory=dict)
    shops: dict[int, ShopCounter] = field(default_factory=dict)
    log: int = 0
    log_differences: list[Difference] = field(default_factory=list)
    rolled_up_differences: list[Difference] = field(default_factory=list)
    spilled: dict[str, int] = field(default_factory=dict)
    vouchers: dict[int, VoucherRow] = field(default_factory=dict)
    orders: OrderRecord = field(default_factory=OrderRecord)
    days: dict[int, set[date]] = field(default_factory=dict)
    unread_counters: UnreadCount = field(default_factory=UnreadCount)
    unread_differences: list[Difference] = field(default_factory=list)

    def total(self, kind: str, target: Target) -> int:
        """Return a total of a target, 0 without a counter."""
        return self.totals.get((kind, target), _NO_COUNTER).total

    def version(self, kind: str, target: Target) -> int:
        """Return the version of a target's counter, with the epoch."""
        return self.epoch + self.totals.get((kind, target), _NO_COUNTER).version


class OutboxEntry(NamedTuple):
    """An entry of an outbox: the accepted state, its version, the state in MySQL."""

    want: bool
    version_us: int
    base: bool


@dataclass(slots=True)
class TargetState:
    """One target and kind in Redis at one instant.

    ``loaded``: readers use it; else it has only an outbox, or was loaded before Redis restarted.
    ``base``: the counter at ``db_version``. ``recent``: actor -> version, above ``floor_us`` or,
    if ``complete``, all. ``bits``: size of the ``bloom`` filter, 0 without one. ``ahead``: versions
    of commits that arrived early; ``ahead_stays``: they do not expire. ``indexed_us``: score in the
    outbox index, None if absent. ``moving``: it changed during each read. ``unreadable``: what is
    in place of a value that Plaza writes.
    """

    loaded: bool = False
    db_version: int = 0
    base: int = 0
    delta: int = 0
    version_us: int = 0
    outbox_count: int = 0
    complete: bool = False
    floor_us: int = 0
    bits: int = 0
    blocked: bool = False
    outbox: dict[int, OutboxEntry] = field(default_factory=dict)
    recent: dict[int, int] = field(default_factory=dict)
    bloom: bytes = b""
    ahead: frozenset[int] = frozenset()
    ahead_stays: bool = False
    indexed_us: int | None = None
    moving: bool = False
    unreadable: str = ""

    @property
    def total(self) -> int | None:
        """The total for readers, None if not loaded."""
        return self.base + self.delta if self.loaded else None

    def may_have(self, actor_id: int) -> bool:
        """Return whether the Bloom filter has all four bits of an actor, or lacks its seal and is
        not used."""
        if not self._has_bit(self.bits):
            return True
        digest = hashlib.sha1(str(actor_id).encode(), usedforsecurity=False).hexdigest()
        first, step = int(digest[:8], 16), int(digest[8:16], 16)
        return all(self._has_bit((first + i * step) % self.bits) for i in range(4))

    def _has_bit(self, offset: int) -> bool:
        byte, bit = divmod(offset, 8)
        return byte < len(self.bloom) and bool(self.bloom[byte] >> (7 - bit) & 1)


class CachedCounter(NamedTuple):
    """A projection of a counter at ``version``."""

    version: int
    value: str


@dataclass(slots=True)
class RedisState:
    """The state of Redis.

    ``outbox_index``: entries of all shards, <kind>:<target>. ``users``, and ``comments`` by post:
    projections of counters. ``holds``: by user, target -> time in
    microseconds. ``sales``: by voucher. ``calendars``: by user;
    ``checkin_outbox_index``: user ids.
    """

    hot: dict[TargetKind, TargetState] = field(default_factory=dict)
    outbox_index: set[str] = field(default_factory=set)
    users: dict[int, CachedCounter] = field(default_factory=dict)
    comments: dict[int, CachedCounter] = field(default_factory=dict)
    holds: dict[int, dict[str, int]] = field(default_factory=dict)
    sales: dict[int, SaleState] = field(default_factory=dict)
    orders: list[OrderEntry] = field(default_factory=list)
    calendars: dict[int, Calendar] = field(default_factory=dict)
    checkin_outbox_index: set[str] = field(default_factory=set)

    @property
    def pending(self) -> int:
        """The number of changes in all outboxes, check-ins and pending orders included."""
        return (
            sum(len(hot.outbox) for hot in self.hot.values())
            + sum(calendar.pending for calendar in self.calendars.values())
            + sum(sale.pending for sale in self.sales.values())
        )


@dataclass(slots=True)
class RedisKeys:
    """The keys that the audit reads; dicts are by id."""

    reactions: set[TargetKind] = field(default_factory=set)
    outbox_index: set[str] = field(default_factory=set)
    users: dict[int, str] = field(default_factory=dict)
    comments: dict[int, str] = field(default_factory=dict)
    holds: dict[int, str] = field(default_factory=dict)
    sales: set[int] = field(default_factory=set)
    orders: OrderKeys = field(default_factory=OrderKeys)
    checkins: CheckinKeys = field(default_factory=CheckinKeys)

    def add_key(self, key: str) -> None:
        """Add ``key`` if the audit reads it."""
        if _OUTBOX_INDEX_KEY.fullmatch(key):
            self.outbox_index.add(key)
        elif match := _REACTIONS.fullmatch(key):
            if match[1] in KINDS:
                self.reactions.add((match[1], Target(match[2], int(match[3]))))
        elif match := _COUNTERS.fullmatch(key):
            keys = {
                ("user", "counters"): self.users,
                ("user", "holds"): self.holds,
                ("post", "comments"): self.comments,
            }
            keys.get((match[1], match[3]), {})[int(match[2])] = key
        elif match := _SALE.fullmatch(key):
            self.sales.add(int(match[1]))
        elif not self.orders.add_key(key):
            self.checkins.add_key(key)


def read_mysql_state(
    mysql_url: str, *, archives: bool = False, cache: RedisState | None = None
) -> MysqlState:
    """Read MySQL in one snapshot and, with ``archives``, the archives of the reaction log.

    ``cache``: Redis' state, read before; for targets of which it has an older version, the commits
    since are read from the log. Raises pymysql.err.MySQLError; with ``archives`` also ObjectsDown
    and ArchiveCorrupt.
    """
    record = MysqlState()
    with closing(connect_mysql(mysql_url)) as connection, connection.cursor(SSCursor) as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        # First: from here on, no partition of the log can be dropped.
        record.log = recount.count_events(cursor, archives=archives)
        for contradiction in recount.find_contradictions(cursor, archives=archives):
            record.log_differences.append(
                Difference(
                    f"{contradiction.kind} {contradiction.target} by {contradiction.actor_id}",
                    f"log {_show(contradiction.log)}, row {_show(contradiction.row)}",
                )
            )
        cursor.execute(
            "SELECT kind, target_type, target_id, actor_id, version, state FROM reaction"
        )
        for kind, target_type, target_id, actor_id, version, state in cursor:
            counted = kind, Target(target_type, target_id)
            (record.on if state else record.off).setdefault(counted, {})[actor_id] = version
        cursor.execute("SELECT epoch FROM log_barrier WHERE id = 1")
        record.epoch = sum(epoch for (epoch,) in cursor) * VERSIONS_PER_EPOCH
        cursor.execute(
            "SELECT kind, target_type, target_id, total, version, sorted_at FROM counter"
        )
        for kind, target_type, target_id, *numbers in cursor:
            record.totals[kind, Target(target_type, target_id)] = TargetCounter(*numbers)
        cursor.execute(
            "SELECT kind, target_type, target_id, actor_id, version, state FROM sorted_reaction"
        )
        for kind, target_type, target_id, *entry in cursor:
            record.sorted.setdefault((kind, Target(target_type, target_id)), set()).add(
                tuple(entry)
            )
        _read_log(cursor, record, cache)
        cursor.execute(f"SELECT user_id, {', '.join(USER_COLUMNS)}, version FROM user_counter")  # noqa: S608
        for user_id, *totals in cursor:
            record.users[user_id] = UserCounter(*totals)
        cursor.execute(
            "SELECT content_type, content_id, author_id, parent_id, COALESCE(score, 0),"
            " deleted_at IS NULL FROM content"
        )
        for content_type, content_id, author_id, parent_id, score, live in cursor:
            record.authors[Target(content_type, content_id)] = author_id
            if live and content_type == "post":
                record.posts[author_id] += 1
            elif live and content_type == "comment" and parent_id is not None:
                record.comments[parent_id] += 1
            elif live and content_type == "review" and parent_id is not None:
                reviews, scores = record.reviews.get(parent_id, ShopCounter(0, 0))
                record.reviews[parent_id] = ShopCounter(reviews + 1, scores + score)
        cursor.execute("SELECT type, id, owner_id FROM external_target")
        for target_type, target_id, owner_id in cursor:
            record.authors[Target(target_type, target_id)] = owner_id
        cursor.execute("SELECT shop_id, reviews_total, score_total FROM shop_counter")
        record.shops = {shop_id: ShopCounter(*totals) for shop_id, *totals in cursor}
        cursor.execute(
            f"{_REVIEW_LIKES_DIFFER} AND {_ROLLED_UP} UNION ALL {_HOURS_DIFFER} AND {_ROLLED_UP}"
        )
        for name, content_type, content_id, rolled_up, likes in cursor:
            of = f"{name} of {content_type}:{content_id}"
            record.rolled_up_differences.append(
                Difference(of, f"rolled up {rolled_up}, likes {likes}")
            )
        cursor.execute("SELECT queue, COUNT(*) FROM spilled_message GROUP BY queue")
        record.spilled = dict(cursor)
        record.vouchers = read_vouchers(cursor)
        record.orders = read_orders(cursor)
        record.days = read_days(cursor)
        record.unread_counters = count_unread(cursor)
        record.unread_differences = [Difference(*wrong) for wrong in find_wrong_unread(cursor)]
        cursor.execute("ROLLBACK")
    return record


def _read_log(cursor: SSCursor, record: MysqlState, cache: RedisState | None) -> None:
    """Read the sums of the log's changes, its totals, and the commits since Redis' versions."""
    cursor.execute(
        "SELECT kind, target_type, target_id, SUM(change_by), COUNT(*) FROM reaction_log"
        " GROUP BY kind, target_type, target_id"
    )
    changes, rows = {}, 0
    for kind, target_type, target_id, change, count in cursor:
        changes[kind, Target(target_type, target_id)] = int(change)
        rows += count
    if rows == record.log:  # else some days are in archives only
        record.changes = changes
    cursor.execute(_LOGGED_TOTALS)
    record.log_differences += _find_wrong_log_totals(record, cursor)
    behind = [
        (counted, hot.db_version)
        for counted, hot in (cache.hot.items() if cache else ())
        if hot.loaded and hot.db_version < record.version(*counted)
    ]
    if behind:
        indexed = [[i, kind, *target, s] for i, ((kind, target), s) in enumerate(behind)]
        record.since = {counted: {} for counted, _ in behind}
        cursor.execute(_SINCE, (json.dumps(indexed),))
        for item, actor_id, change in cursor:
            record.since[behind[item][0]][actor_id] = int(change)


def _find_wrong_log_totals(record: MysqlState, commits: Iterable[Any]) -> Iterator[Difference]:
    """Yield commits whose totals in the log differ, do not follow from the commit before, or are
    not the counter at its version, unless the counter was corrected since."""
    for kind, target_type, target_id, db_version, newest, lowest, highest, expected in commits:
        target = Target(target_type, target_id)
        if kind not in KINDS or newest != record.version(kind, target):
            continue
        right = None
        if db_version == newest:
            right = record.total(kind, target)
        elif record.changes is not None:  # else rows of a commit may be in an archive only
            right = expected
        of = f"total in the log of {kind} {target} @{db_version}"
        if lowest != highest:
            yield Difference(of, f"{lowest} and {highest}")
        elif right is not None and lowest != right:
            yield Difference(of, f"log {lowest}, not {right}")


def _show(event: tuple[int, int] | None) -> str:
    return "nothing" if event is None else f"{event[1]}@{event[0]}"


def read_redis_state(redis_url: str, *, cluster: bool = False) -> RedisState:
    """Read Redis with one SCAN and some pipelines. Raises redis.exceptions.RedisError."""
    with connect_redis(redis_url, cluster=cluster) as client:
        redis_keys = RedisKeys()
        for key in client.scan_iter(count=1000):
            redis_keys.add_key(key)
        outbox_index = _read_members(client, redis_keys.outbox_index)
        holds = _read_scores(client, redis_keys.holds.values())
        checkin_outbox_index = _read_members(client, redis_keys.checkins.outbox_index)
        orders = read_entries(client, redis_keys.orders)
        terms = _read_terms(client)

        def find_term(key: str) -> str:
            return terms[_node_of(client, key)]

        return RedisState(
            hot=_read_hot(client, redis_keys.reactions, find_term),
            outbox_index={member for members in outbox_index.values() for member in members},
            users=_read_projections(client, redis_keys.users),
            comments=_read_projections(client, redis_keys.comments),
            holds={
                user_id: holds[key] for user_id, key in redis_keys.holds.items() if key in holds
            },
            orders=orders,
            sales=read_sales(client, sorted(redis_keys.sales), orders),
            calendars=read_calendars(client, redis_keys.checkins, find_term),
            checkin_outbox_index={
                user for users in checkin_outbox_index.values() for user in users
            },
        )


def _read_hot(
    client: Any, reactions: set[TargetKind], find_term: Callable[[str], str]
) -> dict[TargetKind, TargetState]:
    """Read each target at one instant: its meta is read first and last until both are equal."""
    hot = {}
    for batch in _batches(sorted(reactions)):
        todo = {counted: keys_of(*counted) for counted in batch}
        for reads in range(_MAX_READS):
            pipe = client.pipeline(transaction=False)
            for keys in todo.values():
                _queue_target_reads(pipe, keys)
            replies, moving = iter(pipe.execute()), {}
            for counted, keys in todo.items():
                before, *rest = (next(replies) for _ in range(_REPLIES_PER_TARGET))
                if before != rest.pop():
                    moving[counted] = keys
                term = find_term(keys.meta)
                if before or rest[0] or rest[3]:
                    hot[counted] = _read_target(before, rest, term, counted in moving)
                else:
                    hot.pop(counted, None)
            todo = moving
            if not todo or reads == _MAX_READS - 1:
                break
    return hot


def _queue_target_reads(pipe: Any, keys: TargetKeys) -> None:
    pipe.hgetall(keys.meta)
    pipe.hgetall(keys.outbox)
    pipe.zrange(keys.recent, 0, -1, withscores=True)
    pipe.execute_command("GET", keys.bloom, NEVER_DECODE=True)
    pipe.hkeys(keys.ahead)
    pipe.ttl(keys.ahead)
    pipe.zscore(keys.outboxes, keys.member)
    pipe.hgetall(keys.meta)


def _read_target(meta: dict[str, str], rest: list[Any], term: str, moving: bool) -> TargetState:
    outbox, recent, bloom, ahead, ahead_ttl_s, due = rest
    hot = TargetState(
        outbox={int(actor): _read_entry(entry) for actor, entry in outbox.items()},
        recent={int(actor): int(version) for actor, version in recent},
        bloom=bloom or b"",
        ahead=frozenset(map(int, ahead)),
        ahead_stays=ahead_ttl_s == -1,
        indexed_us=None if due is None else int(due),
        moving=moving,
    )
    if meta.get("term") != term:
        return hot
    try:
        meta = unpack_meta(meta)
        if meta["protocol"] != PROTOCOL:
            hot.unreadable = f"protocol {meta['protocol']}"
            return hot
        hot.db_version, hot.base, hot.delta = (
            int(meta["db_version"]),
            int(meta["base"]),
            int(meta["delta"]),
        )
        hot.version_us, hot.outbox_count = int(meta["version"]), int(meta["outbox_count"])
        hot.complete, hot.floor_us = meta["complete"] == "1", int(meta["floor"])
        hot.bits, hot.blocked = int(meta["bloom"]), "blocked" in meta
        hot.loaded = True
    except (KeyError, ValueError) as error:
        hot.unreadable = f"meta: {type(error).__name__} {error}"
    return hot


def unpack_meta(meta: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a target's meta, those in ``mode`` and ``accepted`` by name. Raises
    KeyError or ValueError for a meta that is incomplete."""
    fields = dict(meta)
    fields["protocol"], status, filter_bits = fields.pop("mode").split(":")
    accepted = fields.pop("accepted").split(":")
    fields["delta"], fields["outbox_count"], fields["version"] = accepted
    complete = filter_bits == "complete"
    return fields | {
        "deleted": f"{status == 'deleted':d}",
        "complete": f"{complete:d}",
        "bloom": "0" if complete else filter_bits,
    }


def _read_terms(client: Any) -> dict[str, str]:
    """Return node name -> term; the name of a single Redis is ''."""
    if not hasattr(client, "get_primaries"):
        return {"": str(client.info("replication")["master_replid"])}
    return {
        node.name: str(client.info("replication", target_nodes=node)["master_replid"])
        for node in client.get_primaries()
    }


def _node_of(client: Any, key: str) -> str:
    if not hasattr(client, "get_primaries"):
        return ""
    return str(client.get_node_from_key(key).name)


def _read_projections(client: Any, keys: dict[int, str]) -> dict[int, CachedCounter]:
    """Read the projections under ``keys``, by id. One without a value is a fence."""
    projections = {}
    for batch in _batches(sorted(keys)):
        pipe = client.pipeline(transaction=False)
        for id_ in batch:
            pipe.hmget(keys[id_], ["version", "value"])
        for id_, (version, value) in zip(batch, pipe.execute(), strict=True):
            if value is not None:
                projections[id_] = CachedCounter(int(version), value)
    return projections


def _read_members(client: Any, keys: Collection[str]) -> dict[str, list[str]]:
    """Return the members of sorted sets, without empty ones."""
    return {key: list(score_of) for key, score_of in _read_scores(client, keys).items()}


def _read_scores(client: Any, keys: Collection[str]) -> dict[str, dict[str, int]]:
    """Return the members of sorted sets with their scores, without empty ones."""
    by_key: dict[str, dict[str, int]] = {}
    for batch in _batches(sorted(keys)):
        pipe = client.pipeline(transaction=False)
        for key in batch:
            pipe.zrange(key, 0, -1, withscores=True)
        by_key |= {
            key: {member: int(score) for member, score in pairs}
            for key, pairs in zip(batch, pipe.execute(), strict=True)
            if pairs
        }
    return by_key


def _read_entry(entry: str) -> OutboxEntry:
    want, version_us, base, _ = entry.split(":", 3)
    return OutboxEntry(want == "1", int(version_us), base == "1")


def _batches(items: Sequence[Any]) -> Iterator[list[Any]]:
    rest = iter(items)
    while batch := list(islice(rest, _BATCH)):
        yield batch

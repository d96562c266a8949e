"""The audit report: where Redis, the counters, the rows and the log differ.

from plaza.core import counters

Compares what ``local.audit.stores`` has read, without the product's code. Reactions are compared
exactly while the system is busy, too: a target in Redis is MySQL's state at one version of its
counter, and the log has the commits since. All else is exact only while nothing is in transit.
"""

import random
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from local.audit.checkins import find_wrong_calendars
from local.audit.orders import QUEUES, find_reused_ids, find_stranded_orders
from local.audit.stores import CachedCounter, Difference, MysqlState, RedisState, TargetState
from local.audit.unread import UnreadCount
from local.audit.vouchers import find_oversold, find_wrong_sales
from plaza.core.counters import COMMENT, USER_COUNTER, UserCounter
from plaza.core.counters.model import USER_COLUMNS
from plaza.core.counters.redis_store import HOLD_TTL_MS
from plaza.core.reactions import KINDS, Target
from plaza.social.shop_scores import ShopCounter

USER_COUNTERS = {column.removesuffix("_total"): column for column in USER_COLUMNS}
MAX_FILTER_CHECKS = 10_000  # actors of one target that are checked in its Bloom filter
SWEPT_QUEUES = frozenset(
    {"follows", "reactions"}
)  # queues whose spilled messages the sweeper sends


class Sums(NamedTuple):
    """The sums of one counter: rows, MySQL, Redis (``hot``), and MySQL for what is in Redis."""

    rows: int
    counters: int
    hot: int
    hot_counters: int


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The result of an audit.

    ``hot``: number of totals in Redis. ``drift``: number of totals that are not the number of their
    rows; ``others``: number of other differences. ``queued``, ``spilled`` and ``dead``: messages by
    queue. ``moving``: targets that changed during each read and were not compared. ``totals``: by
    kind of reaction; ``counters``: of comments and of users, by name. ``sold`` units and
    ``checkins`` days are counted in MySQL, as are ``unread counters``.
    """

    targets: int
    hot: int
    drift: int
    others: int
    pending: int
    outbox_index: int
    accepted: int
    persisted: int
    queued: Mapping[str, int]
    dead: Mapping[str, int]
    totals: Mapping[str, Sums]
    counters: Mapping[str, Sums]
    differences: Sequence[Difference]
    vouchers: int = 0
    sold: int = 0
    checkins: int = 0
    unread_counters: UnreadCount = field(default_factory=UnreadCount)
    spilled: Mapping[str, int] = field(default_factory=dict)
    moving: int = 0
    accepted_differences: Sequence[str] = ()

    @property
    def quiet(self) -> bool:
        """Whether nothing is in transit."""
        return not (
            self.pending
            or self.outbox_index
            or self.moving
            or any(self.queued.values())
            or any(self.spilled.values())
        )

    @property
    def clean(self) -> bool:
        """Whether it is quiet, nothing differs and no message is dead-lettered."""
        return self.quiet and not (self.differences or any(self.dead.values()))

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON, with the first 20 differences."""
        return {
            "clean": self.clean,
            "quiet": self.quiet,
            "targets": self.targets,
            "hot": self.hot,
            "drift": self.drift,
            "others": self.others,
            "pending": self.pending,
            "outbox_index": self.outbox_index,
            "queued": sum(self.queued.values()),
            "queues": {name: number for name, number in self.queued.items() if number},
            "dead": sum(self.dead.values()),
            "spilled": sum(self.spilled.values()),
            "moving": self.moving,
            "accepted": self.accepted,
            "persisted": self.persisted,
            "totals": {kind: sums._asdict() for kind, sums in self.totals.items()},
            "counters": {name: sums._asdict() for name, sums in self.counters.items()},
            "vouchers": self.vouchers,
            "sold": self.sold,
            "checkins": self.checkins,
            "unread": self.unread_counters._asdict(),
            "differences": [str(difference) for difference in self.differences[:20]],
            "accepted_differences": self.accepted_differences[:20],
        }


def compare(
    record: MysqlState, cache: RedisState, depths: Mapping[str, tuple[int, int]]
) -> AuditReport:
    """Compare all stores. ``depths``: queue -> (messages waiting, in flight)."""
    messages = {name: sum(depth) for name, depth in depths.items()}
    queued = {name: depth for name, depth in messages.items() if not name.endswith("_dlq")}
    of_users = count_rows(record)
    drift = [
        *find_drift(record, cache),
        *find_wrong_users(record, of_users),
        *find_wrong_comments(record),
        *find_wrong_shops(record),
        *record.rolled_up_differences,
        *record.unread_differences,
        *(Difference(*difference) for difference in find_oversold(record.vouchers)),
        *(Difference(*difference) for difference in find_reused_ids(record.orders, cache.orders)),
    ]
    outbox_index = len(cache.outbox_index) + len(cache.checkin_outbox_index)
    stored = len(record.orders.stored) + sum(record.spilled.values())
    is_quiet = not (cache.pending or stored or outbox_index or any(queued.values()))
    others = [
        *find_orphans(record),
        *find_wrong_versions(record, cache, is_quiet),
        *find_wrong_lists(record, cache),
        *record.log_differences,
        *find_wrong_sorting(record),
        *find_wrong_outboxes(record, cache),
        *find_lost_commits(cache),
        *find_lost_messages(record),
    ]
    if not any(messages.get(name) for name in QUEUES):
        generations = {voucher_id: sale.generation for voucher_id, sale in cache.sales.items()}
        stranded = find_stranded_orders(record.orders, cache.orders, generations, is_quiet)
        others += [Difference(*difference) for difference in stranded]
    if is_quiet:
        others += [*find_wrong_projections(record, cache), *find_holds(record, cache)]
        others += [
            Difference(*difference)
            for difference in (
                *find_wrong_sales(record.vouchers, cache.sales),
                *find_wrong_calendars(record.days, cache.calendars),
            )
        ]
    targets = {target for _, target in [*record.on, *cache.hot]} | {
        target for _, target in record.totals
    }
    waiting = sum(
        max(_row_versions(record, counted, actor_id)) < entry.version_us
        for counted, hot in cache.hot.items()
        for actor_id, entry in hot.outbox.items()
    )
    return AuditReport(
        targets=len(targets),
        hot=sum(hot.loaded for hot in cache.hot.values()),
        drift=len(drift),
        others=len(others),
        pending=cache.pending + stored,
        outbox_index=outbox_index,
        accepted=record.log + waiting,
        persisted=record.log,
        queued=queued,
        dead={name: depth for name, depth in messages.items() if name.endswith("_dlq")},
        totals={kind: _sum_reactions(kind, record, cache) for kind in KINDS},
        counters={
            "comments": _sum_comments(record, cache),
            "reviews": _sum_shops(record, "reviews_total"),
            "scores": _sum_shops(record, "score_total"),
            **_sum_users(record, cache, of_users),
        },
        differences=[*drift, *others],
        vouchers=len(record.vouchers),
        sold=sum(voucher.sold for voucher in record.vouchers.values()),
        checkins=sum(map(len, record.days.values())),
        unread_counters=record.unread_counters,
        spilled=record.spilled,
        moving=sum(hot.moving for hot in cache.hot.values()),
        accepted_differences=list(find_accepted_holds(record, cache)) if is_quiet else [],
    )


def count_rows(record: MysqlState) -> dict[int, Counter[str]]:
    """Count what the counters of users must be: user -> column -> number of rows.

    Reactions to deleted content stay in the author's counters.
    """
    counted: dict[int, Counter[str]] = {}

    def count(user_id: int, column: str, rows: int) -> None:
        counted.setdefault(user_id, Counter())[column] += rows

    for (name, target), actors in record.on.items():
        kind = KINDS.get(name)
        if kind is None:  # no counter counts this kind; find_drift reports it
            continue
        owner_id = target.id if target.type == "user" else record.authors.get(target)
        if owner_id is not None and kind.received:
            count(owner_id, kind.received, len(actors))
        if kind.given is not None:
            for actor_id in actors:
                count(actor_id, kind.given, 1)
    for author_id, posts in record.posts.items():
        count(author_id, "posts_total", posts)
    return counted


def find_drift(record: MysqlState, cache: RedisState) -> list[Difference]:
    """Return where rows, counter, the log's changes and Redis differ, of every target.

    Redis is compared with the counter at the version that Redis has.
    """
    counted = {(kind, target) for kind, target in record.totals if kind != COMMENT}
    counted |= set(record.changes or ())
    differences = []
    for name, target in sorted(counted | set(record.on) | set(cache.hot)):
        rows = len(record.on.get((name, target), ()))
        counter = record.total(name, target) if name in KINDS else 0
        logged = rows if record.changes is None else record.changes.get((name, target), 0)
        hot = cache.hot.get((name, target), TargetState())
        since = _find_since(record, (name, target), hot)
        base = hot.base if since is not None else counter
        if counter != rows or logged != rows or base != counter - sum((since or {}).values()):
            shown = "not loaded" if hot.total is None else str(hot.total)
            shown += f" with {len(hot.outbox)} pending" if hot.outbox else ""
            shown += f" @{hot.db_version}, {sum(since.values())} since" if since else ""
            details = f"Redis {shown}, counter {counter}, rows {rows}"
            details += f", log {logged}" if logged != rows else ""
            differences.append(Difference(f"{name} {target}", details))
    return differences


def find_wrong_sorting(record: MysqlState) -> Iterator[Difference]:
    """Yield complete sorted lists whose entries are not the rows."""
    for (name, target), counter in sorted(record.totals.items()):
        if counter.has_list:
            rows = {
                (actor_id, version, state)
                for state, of in ((1, record.on), (0, record.off))
                for actor_id, version in of.get((name, target), {}).items()
            }
            if wrong := rows ^ record.sorted.get((name, target), set()):
                yield Difference(
                    f"{name} {target}", f"{len(wrong)} entries of its sorted list are wrong"
                )


def find_orphans(record: MysqlState) -> Iterator[Difference]:
    """Yield targets with stored reactions that were never created.

    What was deleted has its row still. Users are left out: an erasure deletes theirs.
    """
    reacted = Counter({counted: len(actors) for counted, actors in record.on.items()})
    reacted.update({counted: len(actors) for counted, actors in record.off.items()})
    for (kind, target), rows in sorted(reacted.items()):
        if target.type != "user" and target not in record.authors:
            yield Difference(f"{kind} {target}", f"rows {rows}, the target does not exist")


def _find_since(
    record: MysqlState, counted: tuple[str, Target], hot: TargetState
) -> Mapping[int, int] | None:
    """Return actor -> change by the commits since Redis' version; None if it can't be compared."""
    if not hot.loaded or hot.moving or counted[0] not in KINDS:
        return None
    return {} if hot.db_version >= record.version(*counted) else record.since.get(counted)


def _row_versions(
    record: MysqlState, counted: tuple[str, Target], actor_id: int
) -> tuple[int, int]:
    """Return (version of the active row, version of the inactive row), 0 for none."""
    return (
        record.on.get(counted, {}).get(actor_id, 0),
        record.off.get(counted, {}).get(actor_id, 0),
    )


def find_wrong_users(
    record: MysqlState, of_users: Mapping[int, Mapping[str, int]]
) -> Iterator[Difference]:
    """Yield counters of users that are not the number of their rows."""
    for user_id in sorted(record.users.keys() | of_users.keys()):
        counter = record.users.get(user_id, UserCounter())
        rows = of_users.get(user_id, {})
        for name, column in USER_COUNTERS.items():
            stored, counted = getattr(counter, column), rows.get(column, 0)
            if stored != counted:
                of = f"{name.replace('_', ' ')} of user {user_id}"
                yield Difference(of, f"counter {stored}, rows {counted}")


def find_wrong_comments(record: MysqlState) -> Iterator[Difference]:
    """Yield counters of comments that are not the number of live comments."""
    counted = {target for kind, target in record.totals if kind == COMMENT}
    for target in sorted(counted | {Target("post", id_) for id_ in record.comments}):
        rows = record.comments[target.id] if target.type == "post" else 0
        if (counter := record.total(COMMENT, target)) != rows:
            yield Difference(f"comments of {target}", f"counter {counter}, rows {rows}")


def find_wrong_shops(record: MysqlState) -> Iterator[Difference]:
    """Yield counters of shops that are not the number of live reviews and the sum of their scores.
    A shop without a counter is left out: its first reader counts."""
    for shop_id, counter in sorted(record.shops.items()):
        rows = record.reviews.get(shop_id, ShopCounter(0, 0))
        if counter != rows:
            of = f"reviews and scores of shop {shop_id}"
            yield Difference(of, f"counter {tuple(counter)}, rows {tuple(rows)}")


def find_wrong_lists(record: MysqlState, cache: RedisState) -> Iterator[Difference]:
    """Yield actors whose state in Redis differs from their row.

    Actors with a commit since the version that Redis has are skipped.
    """
    for counted, hot in sorted(cache.hot.items()):
        since = _find_since(record, counted, hot)
        if since is None:
            continue
        of = f"{counted[0]} {counted[1]}"
        on = {a: version for a, version in record.on.get(counted, {}).items() if a not in since}
        recent = {a: version for a, version in hot.recent.items() if a not in since}
        newest = {a for a, version in on.items() if hot.complete or version > hot.floor_us}
        if extra := sorted(recent.keys() - on.keys()):
            yield Difference(of, f"in Redis and not in the rows: {_format_sample(extra)}")
        if missing := sorted(newest - recent.keys()):
            yield Difference(of, f"in the rows and not in Redis: {_format_sample(missing)}")
        if other := sorted(a for a in recent.keys() & on.keys() if recent[a] != on[a]):
            yield Difference(of, f"at another version in Redis: {_format_sample(other)}")
        if denied := _find_denied(hot, on.keys() - recent.keys() - newest):
            yield Difference(of, f"in the rows and denied by the filter: {_format_sample(denied)}")


def _find_denied(hot: TargetState, actor_ids: Collection[int]) -> list[int]:
    """Return the actors, of all or of a sample, that the Bloom filter denies."""
    if not hot.bits:
        return []
    checked = sorted(actor_ids)
    if len(checked) > MAX_FILTER_CHECKS:
        checked = sorted(random.sample(checked, MAX_FILTER_CHECKS))
    return [actor_id for actor_id in checked if not hot.may_have(actor_id)]


def find_wrong_outboxes(record: MysqlState, cache: RedisState) -> Iterator[Difference]:
    """Yield outboxes that contradict their target's meta, or that no sweep would find."""
    for counted, hot in sorted(cache.hot.items()):
        of = f"{counted[0]} {counted[1]}"
        if hot.unreadable:
            yield Difference(of, f"unreadable: {hot.unreadable}")
        if hot.moving:
            continue
        if hot.outbox and hot.indexed_us is None:
            yield Difference(of, f"{len(hot.outbox)} pending, and not in the outbox index")
        if not hot.loaded:
            continue
        if hot.outbox_count != len(hot.outbox):
            yield Difference(
                of, f"outbox_count {hot.outbox_count}, the outbox has {len(hot.outbox)}"
            )
        delta = sum(entry.want - entry.base for entry in hot.outbox.values())
        if hot.delta != delta:
            yield Difference(of, f"delta {hot.delta}, the outbox adds up to {delta}")
        newest = max(
            [*(e.version_us for e in hot.outbox.values()), *hot.recent.values()], default=0
        )
        if newest > hot.version_us:
            yield Difference(of, f"version {hot.version_us}, and an actor has {newest}")
        since = _find_since(record, counted, hot)
        if since is not None and (
            wrong := sorted(
                actor_id
                for actor_id, entry in hot.outbox.items()
                if actor_id not in since and entry.base != (actor_id in record.on.get(counted, {}))
            )
        ):
            yield Difference(
                of, f"pending with another base than the rows: {_format_sample(wrong)}"
            )
    for user_id, calendar in sorted(cache.calendars.items()):
        if calendar.pending and str(user_id) not in cache.checkin_outbox_index:
            yield Difference(
                f"check-ins of user {user_id}",
                f"{calendar.pending} pending, and not in the outbox index",
            )


def find_lost_commits(cache: RedisState) -> Iterator[Difference]:
    """Yield commits in ``ahead`` that are applied already or that no sweep would process."""
    for (kind, target), hot in sorted(cache.hot.items()):
        of, ahead = f"{kind} {target}", sorted(hot.ahead)
        if hot.moving or not ahead:
            continue
        if not hot.loaded:
            if hot.ahead_stays:
                yield Difference(of, f"not loaded, ahead does not expire: {_format_sample(ahead)}")
            continue
        if past := [n for n in ahead if n <= hot.db_version]:
            yield Difference(of, f"ahead, but applied @{hot.db_version}: {_format_sample(past)}")
        elif not hot.blocked or hot.indexed_us is None:
            yield Difference(of, f"ahead @{hot.db_version}, and not swept: {_format_sample(ahead)}")


def find_lost_messages(record: MysqlState) -> Iterator[Difference]:
    """Yield queues with spilled messages that no sweep sends."""
    for queue, count in sorted(record.spilled.items()):
        if queue not in SWEPT_QUEUES:
            yield Difference(f"queue {queue}", f"{count} spilled, and no sweep sends them")


def find_wrong_versions(
    record: MysqlState, cache: RedisState, is_quiet: bool
) -> Iterator[Difference]:
    """Yield targets at a version that MySQL never had or, when quiet, at an older one."""
    for (kind, target), hot in sorted(cache.hot.items()):
        if hot.loaded and not hot.moving and kind in KINDS:
            n = record.version(kind, target)
            if hot.db_version > n or (is_quiet and hot.db_version < n):
                yield Difference(f"{kind} {target}", f"Redis @{hot.db_version}, MySQL @{n}")


def find_wrong_projections(record: MysqlState, cache: RedisState) -> Iterator[Difference]:
    """Yield projections that are not MySQL's counter.

    One with a version that MySQL never had is reported, too: it would not be replaced.
    """
    for user_id, projected in sorted(cache.users.items()):
        counter = record.users.get(user_id, UserCounter())
        if _read_user(projected) != _totals_of(counter) or projected.version > counter.version:
            yield _differs(
                f"counters of user {user_id}",
                projected,
                USER_COUNTER.encode(counter),
                counter.version,
            )
    for post_id, projected in sorted(cache.comments.items()):
        target = Target("post", post_id)
        total = record.total(COMMENT, target)
        version = record.version(COMMENT, target) - record.epoch
        if projected.value != str(total) or projected.version > version:
            yield _differs(f"comments of {target}", projected, str(total), version)


def find_holds(record: MysqlState, cache: RedisState) -> Iterator[Difference]:
    """Yield holds that were not released although their follow is counted."""
    for user_id, holds in sorted(cache.holds.items()):
        counted = [name for name in holds if _has_follow(record, user_id, name)]
        if counted:
            yield Difference(f"holds of user {user_id}", f"not released: {_format_sample(counted)}")


def find_accepted_holds(record: MysqlState, cache: RedisState) -> Iterator[str]:
    """Yield holds whose follow was not stored, and until when they count (docs/limits.md)."""
    for user_id, holds in sorted(cache.holds.items()):
        for name, at_us in holds.items():
            if not _has_follow(record, user_id, name):
                until = datetime.fromtimestamp((at_us // 1000 + HOLD_TTL_MS) // 1000, UTC)
                yield f"hold of user {user_id}: {name}, until {until:%Y-%m-%dT%H:%M:%SZ}"


def _has_follow(record: MysqlState, user_id: int, name: str) -> bool:
    target_type, _, target_id = name.partition(":")
    return user_id in record.on.get(("follow", Target(target_type, int(target_id))), {})


def _differs(of: str, projected: CachedCounter, value: str, version: int) -> Difference:
    return Difference(of, f"Redis {projected.value} @{projected.version}, MySQL {value} @{version}")


def _read_user(projected: CachedCounter) -> dict[str, int]:
    """Return a user's totals in Redis, empty if unreadable."""
    counter = USER_COUNTER.read(projected.value)
    return {} if counter is None else _totals_of(counter)


def _totals_of(counter: UserCounter) -> dict[str, int]:
    return {column: getattr(counter, column) for column in USER_COLUMNS}


def _sum_reactions(kind: str, record: MysqlState, cache: RedisState) -> Sums:
    cached = {
        t: hot.total for (k, t), hot in cache.hot.items() if k == kind and hot.total is not None
    }
    return Sums(
        rows=sum(len(actors) for (k, _), actors in record.on.items() if k == kind),
        counters=_sum_totals(record, kind),
        hot=sum(cached.values()),
        hot_counters=sum(record.total(kind, target) for target in cached),
    )


def _sum_totals(record: MysqlState, kind: str) -> int:
    return sum(counter.total for (name, _), counter in record.totals.items() if name == kind)


def _sum_shops(record: MysqlState, column: str) -> Sums:
    """Return the sums of a total of all shops that have a counter. Redis keeps none for more than
    3 s."""
    rows = (record.reviews.get(shop_id, ShopCounter(0, 0)) for shop_id in record.shops)
    return Sums(
        rows=sum(getattr(counter, column) for counter in rows),
        counters=sum(getattr(counter, column) for counter in record.shops.values()),
        hot=0,
        hot_counters=0,
    )


def _sum_comments(record: MysqlState, cache: RedisState) -> Sums:
    return Sums(
        rows=record.comments.total(),
        counters=_sum_totals(record, COMMENT),
        hot=sum(int(shown.value) for shown in cache.comments.values() if shown.value.isdigit()),
        hot_counters=sum(record.total(COMMENT, Target("post", id_)) for id_ in cache.comments),
    )


def _sum_users(
    record: MysqlState, cache: RedisState, of_users: Mapping[int, Mapping[str, int]]
) -> dict[str, Sums]:
    cached = [_read_user(projected) for projected in cache.users.values()]
    counters = [record.users.get(user_id, UserCounter()) for user_id in cache.users]
    return {
        name: Sums(
            rows=sum(rows.get(column, 0) for rows in of_users.values()),
            counters=sum(getattr(counter, column) for counter in record.users.values()),
            hot=sum(totals.get(column, 0) for totals in cached),
            hot_counters=sum(getattr(counter, column) for counter in counters),
        )
        for name, column in USER_COUNTERS.items()
    }


def _format_sample(members: Sequence[object]) -> str:
    shown = ", ".join(map(str, members[:5]))
    return shown if len(members) <= 5 else f"{shown} and {len(members) - 5} more"

"""The table of truth: what Redis, the counters, the rows and the log say, and where they differ.

Comparing is arithmetic on what ``local.evidence`` read. All of it is exact only while the system
is quiet; what is on its way is told as pending.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from local.days import find_wrong_calendars
from local.evidence import Cache, Difference, Hot, Projected, Record
from local.orders import QUEUES, find_reused_ids, find_stranded_orders
from local.vouchers import find_oversold, find_wrong_sales
from plaza.counters import UserCounter
from plaza.counters.counters import USER_COLUMNS
from plaza.reactions import KINDS, Target

USER_COUNTERS = {column.removesuffix("_total"): column for column in USER_COLUMNS}
_COMMENTS = "comment_total"


class Sums(NamedTuple):
    """One counter, added up: its rows, the counters, and of those that Redis holds: Redis, and
    the counters."""

    rows: int
    counters: int
    hot: int
    hot_counters: int


@dataclass(frozen=True, slots=True)
class Truth:
    """The table of truth. Clean: all agree and nothing is on its way or lost.

    ``drift`` counts the totals that are not what they count, ``others`` everything else that
    differs. ``queued`` and ``dead`` count messages by queue. ``totals`` are by kind of reaction;
    ``counters`` are those of comments and of users, by name. ``sold``: units of ``vouchers``, and
    ``checkins``: days, as MySQL has them.
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
    totals: Mapping[str, Sums]
    counters: Mapping[str, Sums]
    differences: Sequence[Difference]
    vouchers: int = 0
    sold: int = 0
    checkins: int = 0

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
            "totals": {kind: sums._asdict() for kind, sums in self.totals.items()},
            "counters": {name: sums._asdict() for name, sums in self.counters.items()},
            "vouchers": self.vouchers,
            "sold": self.sold,
            "checkins": self.checkins,
            "differences": [str(difference) for difference in self.differences[:20]],
        }


def compare(record: Record, cache: Cache, depths: Mapping[str, tuple[int, int]]) -> Truth:
    """Hold all of it against each other. ``depths``: queue -> (messages waiting, in work)."""
    messages = {name: sum(depth) for name, depth in depths.items()}
    queued = {name: depth for name, depth in messages.items() if not name.endswith("_dlq")}
    of_users = count_rows(record)
    drift = [
        *find_drift(record, cache),
        *find_wrong_users(record, of_users),
        *find_wrong_comments(record),
        *record.rolled_up_differences,
        *(Difference(*found) for found in find_oversold(record.vouchers)),
        *(Difference(*found) for found in find_reused_ids(record.orders, cache.orders)),
    ]
    others = [
        *find_wrong_lists(record, cache),
        *record.log_differences,
        *find_wrong_outboxes(cache),
    ]
    dirty = len(cache.dirty) + len(cache.checkins_dirty)
    stored = len(record.orders.stored)
    quiet = not (cache.pending or stored or dirty or any(queued.values()))
    if not any(messages.get(name) for name in QUEUES):
        epochs = {voucher_id: sale.epoch for voucher_id, sale in cache.sales.items()}
        stranded = find_stranded_orders(record.orders, cache.orders, epochs, quiet)
        others += [Difference(*found) for found in stranded]
    if quiet:
        others += [*find_wrong_projections(record, cache), *find_claims(cache)]
        others += [
            Difference(*found)
            for found in (
                *find_wrong_sales(record.vouchers, cache.sales),
                *find_wrong_calendars(record.days, cache.calendars),
            )
        ]
    targets = {target for _, target in [*record.on, *cache.hot]} | set(record.totals)
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
        pending=cache.pending + stored,
        dirty=dirty,
        accepted=record.log + waiting,
        persisted=record.log,
        queued=queued,
        dead={name: depth for name, depth in messages.items() if name.endswith("_dlq")},
        totals={kind: _add_up(kind, record, cache) for kind in KINDS},
        counters={
            "comments": _add_up_comments(record, cache),
            **_add_up_users(record, cache, of_users),
        },
        differences=[*drift, *others],
        vouchers=len(record.vouchers),
        sold=sum(voucher.sold for voucher in record.vouchers.values()),
        checkins=sum(map(len, record.days.values())),
    )


def count_rows(record: Record) -> dict[int, Counter[str]]:
    """What the counters of users must be: user -> column -> how many rows it counts.

    What somebody received for content that was deleted stays theirs.
    """
    counted: dict[int, Counter[str]] = {}

    def count(user_id: int, column: str, rows: int) -> None:
        counted.setdefault(user_id, Counter())[column] += rows

    for (name, target), actors in record.on.items():
        kind = KINDS.get(name)
        if kind is None:  # no counter can be right about it: drift says so
            continue
        owner_id = target.id if target.type == "user" else record.authors.get(target)
        if owner_id is not None:
            count(owner_id, kind.received, len(actors))
        if kind.given is not None:
            for actor_id in actors:
                count(actor_id, kind.given, 1)
    for author_id, posts in record.posts.items():
        count(author_id, "posts_total", posts)
    return counted


def find_drift(record: Record, cache: Cache) -> list[Difference]:
    """Where rows, counter and Redis (if it holds the target, with nothing pending) differ."""
    counted = {(kind, target) for target in record.totals for kind in KINDS}
    differences = []
    for name, target in sorted(counted | set(record.on) | set(cache.hot)):
        rows = len(record.on.get((name, target), ()))
        kind = KINDS.get(name)
        counter = record.total(target, kind.total) if kind else 0
        hot = cache.hot.get((name, target), Hot())
        total = hot.total if not hot.pending else None
        if counter != rows or (total is not None and total != rows):
            shown = "not there" if hot.total is None else str(hot.total)
            shown += f" with {len(hot.pending)} pending" if hot.pending else ""
            differences.append(
                Difference(f"{name} {target}", f"Redis {shown}, counter {counter}, rows {rows}")
            )
    return differences


def find_wrong_users(
    record: Record, of_users: Mapping[int, Mapping[str, int]]
) -> Iterator[Difference]:
    """Counters of users that are not the number of rows they count."""
    for user_id in sorted(record.users.keys() | of_users.keys()):
        counter = record.users.get(user_id, UserCounter())
        rows = of_users.get(user_id, {})
        for name, column in USER_COUNTERS.items():
            said, counted = getattr(counter, column), rows.get(column, 0)
            if said != counted:
                of = f"{name.replace('_', ' ')} of user {user_id}"
                yield Difference(of, f"counter {said}, rows {counted}")


def find_wrong_comments(record: Record) -> Iterator[Difference]:
    """Counters of comments that are not the number of live comments."""
    for target in sorted(record.totals.keys() | {Target("post", id_) for id_ in record.comments}):
        rows = record.comments[target.id] if target.type == "post" else 0
        if (counter := record.total(target, _COMMENTS)) != rows:
            yield Difference(f"comments of {target}", f"counter {counter}, rows {rows}")


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


def find_wrong_outboxes(cache: Cache) -> Iterator[Difference]:
    """Targets with pending changes that the sweeper would not find."""
    for (kind, target), hot in sorted(cache.hot.items()):
        if hot.pending and f"{kind}:{target}" not in cache.dirty:
            yield Difference(f"{kind} {target}", f"{len(hot.pending)} pending, and not dirty")
    for user_id, calendar in sorted(cache.calendars.items()):
        if calendar.pending and str(user_id) not in cache.checkins_dirty:
            yield Difference(
                f"check-ins of user {user_id}", f"{calendar.pending} pending, and not dirty"
            )


def find_wrong_projections(record: Record, cache: Cache) -> Iterator[Difference]:
    """Counters that Redis shows otherwise than MySQL has them.

    One of an older version may say the same: the comments of a post move its version only
    together with its likes. One of a version that MySQL never had would not be replaced.
    """
    for user_id, projected in sorted(cache.users.items()):
        counter = record.users.get(user_id, UserCounter())
        if _read_user(projected) != _totals_of(counter) or projected.ver > counter.ver:
            yield _differs(f"counters of user {user_id}", projected, counter.to_json(), counter.ver)
    for post_id, projected in sorted(cache.comments.items()):
        target = Target("post", post_id)
        total = record.total(target, _COMMENTS)
        ver = record.totals[target].ver if target in record.totals else 0
        if projected.value != str(total) or projected.ver > ver:
            yield _differs(f"comments of {target}", projected, str(total), ver)


def find_claims(cache: Cache) -> Iterator[Difference]:
    """What users claimed and nobody released although it is settled."""
    for user_id, claims in sorted(cache.claims.items()):
        yield Difference(f"claims of user {user_id}", f"not released: {_some(claims)}")


def _differs(of: str, projected: Projected, value: str, ver: int) -> Difference:
    return Difference(of, f"Redis {projected.value} @{projected.ver}, MySQL {value} @{ver}")


def _read_user(projected: Projected) -> dict[str, int]:
    """The totals that Redis shows of a user, none if they can't be read."""
    try:
        return _totals_of(UserCounter.from_json(projected.value))
    except (ValueError, TypeError):
        return {}


def _totals_of(counter: UserCounter) -> dict[str, int]:
    return {column: getattr(counter, column) for column in USER_COLUMNS}


def _add_up(kind: str, record: Record, cache: Cache) -> Sums:
    column = KINDS[kind].total
    held = {
        t: hot.total for (k, t), hot in cache.hot.items() if k == kind and hot.total is not None
    }
    return Sums(
        rows=sum(len(actors) for (k, _), actors in record.on.items() if k == kind),
        counters=sum(counter.totals[column] for counter in record.totals.values()),
        hot=sum(held.values()),
        hot_counters=sum(record.total(target, column) for target in held),
    )


def _add_up_comments(record: Record, cache: Cache) -> Sums:
    return Sums(
        rows=record.comments.total(),
        counters=sum(counter.totals[_COMMENTS] for counter in record.totals.values()),
        hot=sum(int(held.value) for held in cache.comments.values() if held.value.isdigit()),
        hot_counters=sum(record.total(Target("post", id_), _COMMENTS) for id_ in cache.comments),
    )


def _add_up_users(
    record: Record, cache: Cache, of_users: Mapping[int, Mapping[str, int]]
) -> dict[str, Sums]:
    held = [_read_user(projected) for projected in cache.users.values()]
    counters = [record.users.get(user_id, UserCounter()) for user_id in cache.users]
    return {
        name: Sums(
            rows=sum(rows.get(column, 0) for rows in of_users.values()),
            counters=sum(getattr(counter, column) for counter in record.users.values()),
            hot=sum(totals.get(column, 0) for totals in held),
            hot_counters=sum(getattr(counter, column) for counter in counters),
        )
        for name, column in USER_COUNTERS.items()
    }


def _some(members: Sequence[object]) -> str:
    shown = ", ".join(map(str, members[:5]))
    return shown if len(members) <= 5 else f"{shown} and {len(members) - 5} more"

"""Recount counters from the rows or from the log alone, and report where they differ.

A recount from the log keeps the newest event of each actor and target in memory, however many
events the log has: 150 bytes each for targets with many actors, 400 bytes for targets with one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from plaza.core.counters import COMMENT
from plaza.core.reaction_log import mysql_log, mysql_totals, s3_archive
from plaza.core.reaction_log.model import POSTS, CounterKey, LoggedEvent, Scope
from plaza.core.reactions import KINDS, Target
from plaza.infra.mysql.mysql import Cursor

NOT_IN_LOG = (COMMENT, POSTS)
MAX_SHOWN = 100
NO_LIMIT_US = 2**63 - 1
_GIVEN = {kind.name for kind in KINDS.values() if kind.given}
_EventFilter = Callable[[tuple[str, int], str, int], bool]


class CounterDifference(NamedTuple):
    """A counter, its value in MySQL and the recounted value."""

    counted: CounterKey
    counter: int
    recounted: int


class Contradiction(NamedTuple):
    """A reaction whose row is not the newest event of the log; both are (version, state)."""

    target: Target
    kind: str
    actor_id: int
    row: tuple[int, int] | None
    log: tuple[int, int] | None


@dataclass(slots=True)
class Recount:
    """The number of counters compared, and those that differ.

    ``events_in_mysql`` and ``events_archived``: events read from the log; an event may be in both.
    ``contradicting``: rows that contradict the log; ``contradictions``: the first 100 of them.
    """

    compared: int = 0
    differing: list[CounterDifference] = field(default_factory=list)
    events_in_mysql: int = 0
    events_archived: int = 0
    contradicting: int = 0
    contradictions: list[Contradiction] = field(default_factory=list)


class LatestEvents:
    """The newest event of each (target, kind, actor) up to version ``until_us``."""

    def __init__(self, until_us: int = NO_LIMIT_US, keep: _EventFilter | None = None) -> None:
        self.until_us = until_us
        self.keep = keep
        # (type, kind) -> target -> actor -> version * 2 + state
        self.latest: dict[tuple[str, str], dict[int, dict[int, int]]] = defaultdict(
            lambda: defaultdict(dict)
        )

    def add(self, rows: Iterable[LoggedEvent]) -> None:
        """Add events in any order. Safe to repeat."""
        latest, until_us, keep = self.latest, self.until_us, self.keep
        for of, target_id, kind, actor, version_us, state, _ in rows:
            if version_us > until_us or (keep and not keep((of, target_id), kind, actor)):
                continue
            actors = latest[of, kind][target_id]
            value = version_us * 2 + state
            if actors.get(actor, 0) < value:
                actors[actor] = value

    def count(self, owners: Mapping[tuple[str, int], int]) -> dict[CounterKey, int]:
        """Return the value of each counter. ``owners``: target -> owner."""
        counted: dict[CounterKey, int] = defaultdict(int)
        for (of, name), targets in self.latest.items():
            kind = KINDS.get(name)
            if kind is None:  # no counter counts this kind; only its rows are compared
                continue
            for target_id, actors in targets.items():
                on = sum(value & 1 for value in actors.values())
                counted[CounterKey(Target(of, target_id), name)] = on
                owner = target_id if of == "user" else owners.get((of, target_id))
                if owner is not None and kind.received:
                    counted[CounterKey(Target("user", owner), kind.received)] += on
                if kind.given:
                    for actor, value in actors.items():
                        counted[CounterKey(Target("user", actor), kind.given)] += value & 1
        return counted

    def compare_rows(
        self, rows: Iterable[tuple[str, int, str, int, int, int]]
    ) -> Iterator[Contradiction]:
        """Yield the contradictions of ``rows``, which must be all rows, and the log. Clears this.

        A row that is newer than ``until_us`` is no contradiction.
        """
        latest, until_us, keep = self.latest, self.until_us, self.keep
        for of, target_id, kind, actor, version_us, state in rows:
            if keep and not keep((of, target_id), kind, actor):
                continue
            value = latest[of, kind][target_id].pop(actor, None)
            if version_us <= until_us and value != version_us * 2 + state:
                yield Contradiction(
                    Target(of, target_id), kind, actor, (version_us, state), _unpack_state(value)
                )
        for (of, kind), targets in self.latest.items():
            for target_id, actors in targets.items():
                for actor, value in actors.items():
                    yield Contradiction(
                        Target(of, target_id), kind, actor, None, _unpack_state(value)
                    )


def _unpack_state(value: int | None) -> tuple[int, int] | None:
    return None if value is None else (value >> 1, value & 1)


def recount_rows(scope: Scope) -> Recount:
    """Compare counters with the rows that they count, in one snapshot. Raises MysqlDown."""
    with mysql_log.snapshot() as cursor:
        counted = mysql_totals.count_rows(cursor, scope)
        counters = mysql_totals.read_counters(cursor, scope)
    return _compare(counted, counters)


def recount_log(scope: Scope, until_us: int = NO_LIMIT_US) -> Recount:
    """Compare counters and rows with the log up to version ``until_us``.

    Archives are read before MySQL, which is read in one snapshot. Raises MysqlDown, ObjectsDown,
    ArchiveCorrupt.
    """
    recount = Recount()
    with mysql_log.snapshot() as cursor:
        newest = LatestEvents(until_us, _build_filter(cursor, scope))
    names: set[str] = set()
    recount.events_archived += _add_archives(newest, names)
    with mysql_log.snapshot() as cursor:
        mysql_log.count_by_day(cursor)  # no partition is dropped from here on
        newest.keep = _build_filter(cursor, scope)  # the user may have published meanwhile
        recount.events_archived += _add_archives(newest, names)
        for rows in mysql_log.read_all(cursor, until_us, scope.target):
            newest.add(rows)
            recount.events_in_mysql += len(rows)
        counted = newest.count(mysql_totals.read_owners(cursor, scope))
        counters = mysql_totals.read_counters(cursor, scope)
        compared = _compare(counted, counters, exclude=NOT_IN_LOG, scope=scope)
        recount.compared, recount.differing = compared.compared, compared.differing
        for key in newest.compare_rows(mysql_log.read_rows(cursor, scope.target)):
            recount.contradicting += 1
            if len(recount.contradictions) < MAX_SHOWN:
                recount.contradictions.append(key)
    return recount


def find_contradictions(cursor: Cursor, *, archives: bool = True) -> Iterator[Contradiction]:
    """Yield rows that are not the newest event of the log, in one snapshot.

    ``archives``: read archived events, too. Raises ObjectsDown, ArchiveCorrupt and what PyMySQL
    raises.
    """
    newest = LatestEvents()
    mysql_log.count_by_day(cursor)
    if archives:
        _add_archives(newest, set())
    for rows in mysql_log.read_all(cursor, NO_LIMIT_US):
        newest.add(rows)
    yield from newest.compare_rows(mysql_log.read_rows(cursor))


def count_events(cursor: Cursor, *, archives: bool = True) -> int:
    """Return the number of distinct events in MySQL and, with ``archives``, in S3.

    Reads days that are in both whole. Raises ObjectsDown, ArchiveCorrupt and what PyMySQL raises.
    """
    in_mysql = mysql_log.count_by_day(cursor)
    events = sum(in_mysql.values())
    by_day = defaultdict(list)
    for name in s3_archive.list_manifests() if archives else ():
        by_day[s3_archive.day_in(name)].append(s3_archive.read_manifest(name))
    for day, manifests in by_day.items():
        if len(manifests) == 1 and day not in in_mysql:
            events += manifests[0].sum.events
            continue
        distinct = {row for rows in mysql_log.read_day(cursor, day) for row in rows}
        events -= len(distinct)
        for manifest in manifests:
            for part in manifest.parts:
                distinct.update(s3_archive.read_part(day, part))
        events += len({row[:5] for row in distinct})
    return events


def _add_archives(newest: LatestEvents, names: set[str]) -> int:
    """Add the archives that are not in ``names`` to both; return the number of their events."""
    events = 0
    for name in s3_archive.list_manifests():
        if name in names:
            continue
        names.add(name)
        day = s3_archive.day_in(name)
        manifest = s3_archive.read_manifest(name)
        for part in manifest.parts:
            if part.min_version_us <= newest.until_us:
                newest.add(s3_archive.read_part(day, part))
                events += part.sum.events
    return events


def _build_filter(cursor: Cursor, scope: Scope) -> _EventFilter | None:
    """Return a filter of the events that the counters of ``scope`` count; None for all events."""
    if scope.target is not None:
        target = scope.target
        return lambda of, _kind, _actor: of == target
    if scope.user_id is not None:
        user_id = scope.user_id
        owned = {("user", user_id), *mysql_totals.read_owners(cursor, scope)}
        return lambda of, kind, actor: of in owned or (actor == user_id and kind in _GIVEN)
    return None


def _compare(
    counted: Mapping[CounterKey, int],
    counters: Mapping[CounterKey, int],
    exclude: tuple[str, ...] = (),
    scope: Scope | None = None,
) -> Recount:
    """Compare both; a missing entry is 0."""
    both = sorted(
        key
        for key in counted.keys() | counters.keys()
        if key.name not in exclude and (scope is None or scope.has(key))
    )
    differing = [
        CounterDifference(key, counters.get(key, 0), counted.get(key, 0))
        for key in both
        if counters.get(key, 0) != counted.get(key, 0)
    ]
    return Recount(len(both), differing)

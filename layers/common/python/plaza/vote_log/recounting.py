"""Recounting: what counters must be, from the rows or from the log alone, and where they differ.

From the log, the newest fact of each actor about each target is kept in memory, however long their
histories are: 150 bytes each where a target has many, 400 where it has one. A million of them take
150 to 400 MB.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pymysql.cursors import Cursor

from plaza.reactions import KINDS, Target
from plaza.vote_log import mysql_log, mysql_totals, s3_archive
from plaza.vote_log.vote_log import COMMENTS, POSTS, Counted, Logged, Scope

NOT_IN_LOG = (COMMENTS, POSTS)
MOST_SHOWN = 100
EVER_US = 2**63 - 1
_GIVEN = {kind.name for kind in KINDS.values() if kind.given}
_Keep = Callable[[tuple[str, int], str, int], bool]


class Differing(NamedTuple):
    """A counter, what MySQL has in it, and what it comes to when it is counted again."""

    counted: Counted
    counter: int
    recounted: int


class Contradiction(NamedTuple):
    """A reaction whose row is not the newest fact of the log, each as (version, state)."""

    target: Target
    kind: str
    actor_id: int
    row: tuple[int, int] | None
    log: tuple[int, int] | None


@dataclass(slots=True)
class Recount:
    """``compared`` counters, and those that differ.

    Of the log: how many facts were read from MySQL and from archives (some may be in both), and how
    many rows contradict it, with the first hundred of them.
    """

    compared: int = 0
    differing: list[Differing] = field(default_factory=list)
    facts_in_mysql: int = 0
    facts_archived: int = 0
    contradicting: int = 0
    contradictions: list[Contradiction] = field(default_factory=list)


class Newest:
    """The newest fact of each (target, kind, actor) up to a version, in any order of reading."""

    def __init__(self, until_us: int = EVER_US, keep: _Keep | None = None) -> None:
        self.until_us = until_us
        self.keep = keep
        # (type, kind) -> target -> actor -> version and state in one number
        self.held: dict[tuple[str, str], dict[int, dict[int, int]]] = defaultdict(
            lambda: defaultdict(dict)
        )

    def add(self, rows: Iterable[Logged]) -> None:
        """Take facts in; twice is as good as once."""
        held, until_us, keep = self.held, self.until_us, self.keep
        for of, target_id, kind, actor, ver_us, state, _ in rows:
            if ver_us > until_us or (keep and not keep((of, target_id), kind, actor)):
                continue
            actors = held[of, kind][target_id]
            value = ver_us * 2 + state
            if actors.get(actor, 0) < value:
                actors[actor] = value

    def count(self, authors: Mapping[tuple[str, int], int]) -> dict[Counted, int]:
        """What counters come to. ``authors``: whose content is."""
        counted: dict[Counted, int] = defaultdict(int)
        for (of, name), targets in self.held.items():
            kind = KINDS.get(name)
            if kind is None:  # no counter counts it; its rows are compared
                continue
            for target_id, actors in targets.items():
                on = sum(value & 1 for value in actors.values())
                counted[Counted(Target(of, target_id), kind.total)] = on
                owner = target_id if of == "user" else authors.get((of, target_id))
                if owner is not None:
                    counted[Counted(Target("user", owner), kind.received)] += on
                if kind.given:
                    for actor, value in actors.items():
                        counted[Counted(Target("user", actor), kind.given)] += value & 1
        return counted

    def contradict(
        self, rows: Iterable[tuple[str, int, str, int, int, int]]
    ) -> Iterator[Contradiction]:
        """Whatever ``rows`` (all there are) and the log don't agree about; empties this.

        A row that is newer than the log was read says nothing about it.
        """
        held, until_us, keep = self.held, self.until_us, self.keep
        for of, target_id, kind, actor, ver_us, state in rows:
            if keep and not keep((of, target_id), kind, actor):
                continue
            value = held[of, kind][target_id].pop(actor, None)
            if ver_us <= until_us and value != ver_us * 2 + state:
                yield Contradiction(
                    Target(of, target_id), kind, actor, (ver_us, state), _fact(value)
                )
        for (of, kind), targets in self.held.items():
            for target_id, actors in targets.items():
                for actor, value in actors.items():
                    yield Contradiction(Target(of, target_id), kind, actor, None, _fact(value))


def _fact(value: int | None) -> tuple[int, int] | None:
    return None if value is None else (value >> 1, value & 1)


def recount_rows(scope: Scope) -> Recount:
    """Compare counters with the rows that they count, at one instant. Raises MysqlDown."""
    with mysql_log.snapshot() as cursor:
        counted = mysql_totals.count_rows(cursor, scope)
        counters = mysql_totals.read_counters(cursor, scope)
    return _compare(counted, counters)


def recount_log(scope: Scope, until_us: int = EVER_US) -> Recount:
    """Compare counters with what the log comes to up to version ``until_us``, and rows with it.

    Archives are read before MySQL, which is read at one instant. Raises MysqlDown, ObjectsDown,
    ArchiveCorrupt.
    """
    found = Recount()
    with mysql_log.snapshot() as cursor:
        newest = Newest(until_us, _only(cursor, scope))
    names: set[str] = set()
    found.facts_archived += _add_archives(newest, names)
    with mysql_log.snapshot() as cursor:
        mysql_log.count_by_day(cursor)  # nothing is dropped from here on
        newest.keep = _only(cursor, scope)  # they may have written more meanwhile
        found.facts_archived += _add_archives(newest, names)
        for rows in mysql_log.read_all(cursor, until_us, scope.target):
            newest.add(rows)
            found.facts_in_mysql += len(rows)
        counted = newest.count(mysql_totals.read_authors(cursor, scope))
        counters = mysql_totals.read_counters(cursor, scope)
        compared = _compare(counted, counters, leave_out=NOT_IN_LOG, scope=scope)
        found.compared, found.differing = compared.compared, compared.differing
        for one in newest.contradict(mysql_log.read_rows(cursor, scope.target)):
            found.contradicting += 1
            if len(found.contradictions) < MOST_SHOWN:
                found.contradictions.append(one)
    return found


def find_contradictions(cursor: Cursor, *, archives: bool = True) -> Iterator[Contradiction]:
    """Rows that are not the newest fact of the log, in one snapshot; ``archives``: of those, too.

    Raises ObjectsDown, ArchiveCorrupt and what PyMySQL does.
    """
    newest = Newest()
    mysql_log.count_by_day(cursor)
    if archives:
        _add_archives(newest, set())
    for rows in mysql_log.read_all(cursor, EVER_US):
        newest.add(rows)
    yield from newest.contradict(mysql_log.read_rows(cursor))


def count_facts(cursor: Cursor, *, archives: bool = True) -> int:
    """How many facts are in MySQL and, with ``archives``, in those, each once: were ever saved.

    Days that are in two places are read. Raises ObjectsDown, ArchiveCorrupt and what PyMySQL does.
    """
    in_mysql = mysql_log.count_by_day(cursor)
    facts = sum(in_mysql.values())
    by_day = defaultdict(list)
    for name in s3_archive.list_manifests() if archives else ():
        by_day[s3_archive.day_in(name)].append(s3_archive.read_manifest(name))
    for day, manifests in by_day.items():
        if len(manifests) == 1 and day not in in_mysql:
            facts += manifests[0].sum.facts
            continue
        once = {row for rows in mysql_log.read_day(cursor, day) for row in rows}
        facts -= len(once)
        for manifest in manifests:
            for part in manifest.parts:
                once.update(s3_archive.read_part(day, part))
        facts += len({row[:5] for row in once})
    return facts


def _add_archives(newest: Newest, names: set[str]) -> int:
    """Take in the archives that are not among ``names``, and add them there; how many facts."""
    facts = 0
    for name in s3_archive.list_manifests():
        if name in names:
            continue
        names.add(name)
        day = s3_archive.day_in(name)
        manifest = s3_archive.read_manifest(name)
        for part in manifest.parts:
            if part.min_ver_us <= newest.until_us:
                newest.add(s3_archive.read_part(day, part))
                facts += part.sum.facts
    return facts


def _only(cursor: Cursor, scope: Scope) -> _Keep | None:
    """Which facts matter to the counters of ``scope``; None: all of them."""
    if scope.target is not None:
        target = scope.target
        return lambda of, _kind, _actor: of == target
    if scope.user_id is not None:
        user_id = scope.user_id
        theirs = {("user", user_id), *mysql_totals.read_authors(cursor, scope)}
        return lambda of, kind, actor: of in theirs or (actor == user_id and kind in _GIVEN)
    return None


def _compare(
    counted: Mapping[Counted, int],
    counters: Mapping[Counted, int],
    leave_out: tuple[str, ...] = (),
    scope: Scope | None = None,
) -> Recount:
    """Hold both against each other; who is in neither has nothing."""
    both = sorted(
        one
        for one in counted.keys() | counters.keys()
        if one.column not in leave_out and (scope is None or scope.has(one))
    )
    differing = [
        Differing(one, counters.get(one, 0), counted.get(one, 0))
        for one in both
        if counters.get(one, 0) != counted.get(one, 0)
    ]
    return Recount(len(both), differing)

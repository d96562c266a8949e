"""The live audit: the total in Redis, the counter and the rows of a few targets, compared now.

Reactions continue meanwhile. Counter and rows are read by one statement, so any difference of them
is drift. Redis is read before and after that statement: if it had the version of the counter at one
of the two times, base and counter must be equal. If not, commits are on their way to Redis, and
their difference says nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from plaza.core.reactions import KINDS, Kind, Target, inspection
from plaza.core.reactions.inspection import UNREADABLE, CountedState, MysqlState
from plaza.core.reactions.model import CachedTarget, Unreadable
from plaza.infra.derived.comparisons import COUNTER
from plaza.infra.http.callers import Charge, no_charge

MAX_AUDITED = 100
MAX_ROWS = 500_000  # that one audit counts
ROWS_PER_TOKEN = 25_000
_NEWEST = 1  # actors of a target are not compared

Inspected = CachedTarget | Unreadable | None


class TargetAudit(NamedTuple):
    """What the stores have of a target and kind.

    ``cached``: its state in Redis, None if it is not loaded. ``rows``: None if they were not
    counted. ``behind``: commits that Redis has not applied yet. ``drift``: difference in reactions
    that nothing on its way explains, at least 1 for each of ``reasons``.
    """

    kind: Kind
    target: Target
    cached: CachedTarget | None
    counter: int
    rows: int | None
    behind: int
    drift: int
    reasons: tuple[str, ...]

    @property
    def total(self) -> int | None:
        """The total that readers get from Redis."""
        return None if self.cached is None else self.cached.base + self.cached.delta


def audit_active(
    limit: int, max_rows: int = MAX_ROWS, charge: Charge = no_charge
) -> list[TargetAudit]:
    """Audit the ``limit`` most active targets. Three round trips and three statements, charged as
    ``audit_targets``. Raises RedisDown, MysqlDown, TooManyRequests."""
    return _audit(inspection.list_active(limit), max_rows, charge)


def audit_targets(targets: Iterable[Target], charge: Charge = no_charge) -> list[TargetAudit]:
    """Audit all kinds of up to 100 targets. Two round trips and two statements; a token is charged
    for each ``ROWS_PER_TOKEN`` that are counted. Raises RedisDown, MysqlDown, TooManyRequests."""
    pairs = [(kind, t) for t in targets for kind in KINDS.values() if t.type in kind.targets]
    return _audit(pairs, MAX_ROWS, charge)


def _audit(
    pairs: Sequence[tuple[Kind, Target]], max_rows: int, charge: Charge = no_charge
) -> list[TargetAudit]:
    if not pairs:
        return []
    counted = _choose_counted(pairs, max_rows, charge)
    before = inspection.inspect_all(pairs, _NEWEST)
    recorded = inspection.read_counted(pairs, counted)
    after = inspection.inspect_all(pairs, _NEWEST)
    return [
        _compare(kind, target, of_redis, of_mysql, other)
        for (kind, target), of_redis, of_mysql, other in zip(
            pairs, before, recorded, after, strict=True
        )
    ]


def _choose_counted(
    pairs: Sequence[tuple[Kind, Target]], max_rows: int, charge: Charge
) -> Collection[Target]:
    """Return the targets whose rows are counted: in order, as many as ``max_rows`` allows."""
    sizes: dict[Target, int] = {}
    for (_, target), (total, _) in zip(pairs, inspection.read_counters(pairs), strict=True):
        sizes[target] = sizes.get(target, 0) + max(0, total)
    counted, left = set(), max_rows
    for target, size in sizes.items():
        if size <= left:
            counted.add(target)
            left -= size
    if tokens := (max_rows - left) // ROWS_PER_TOKEN:
        charge(tokens)
    return counted


def _compare(
    kind: Kind, target: Target, before: Inspected, recorded: CountedState, after: Inspected
) -> TargetAudit:
    cached, reasons, drift = _compare_redis(before, recorded, after)
    behind = max(0, recorded.version - cached.db_version) if cached else 0
    if recorded.rows is not None and recorded.rows != recorded.total:
        reasons = (COUNTER, *reasons)
        drift += abs(recorded.rows - recorded.total)
    return TargetAudit(kind, target, cached, recorded.total, recorded.rows, behind, drift, reasons)


def _compare_redis(
    before: Inspected, recorded: CountedState, after: Inspected
) -> tuple[CachedTarget | None, tuple[str, ...], int]:
    """Return (the state in Redis that was compared, why it differs, by how many reactions)."""
    for state in (before, after):
        if isinstance(state, Unreadable):
            return None, (UNREADABLE,), 1
    # The second state may be newer than MySQL's, which proves nothing.
    is_same = isinstance(after, CachedTarget) and after.db_version == recorded.version
    for state in (before, after if is_same else None):
        if isinstance(state, CachedTarget):
            of_mysql = MysqlState(
                recorded.has_counter, recorded.total, recorded.version, state.newest
            )
            comparison = inspection.compare_target(state, of_mysql)
            if comparison.is_conclusive:
                reasons = tuple(comparison.reasons)
                difference = abs(state.base - recorded.total) if reasons else 0
                return state, reasons, max(len(reasons), difference)
    latest = after or before
    return (latest if isinstance(latest, CachedTarget) else None), (), 0

"""Targets are loaded from MySQL into Redis, and marked as deleted or hidden there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from plaza.core.reactions import redis_commits, redis_hydration
from plaza.core.reactions.kinds import Kind
from plaza.core.reactions.model import MAX_UNSORTED, Commit, Size, Target
from plaza.core.reactions.queues import REBUILDS, BloomBuildStep
from plaza.core.reactions.redis_hydration import HydrationLease
from plaza.core.reactions.settings import reaction_settings
from plaza.core.targets import Visibility, lookup, markers
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.lazy_modules import LazyModule

if TYPE_CHECKING:
    from plaza.core.reactions import mysql_snapshots
else:  # targets that Redis has need no snapshot
    mysql_snapshots = LazyModule("plaza.core.reactions.mysql_snapshots")

_Leased = tuple[Kind, Target, HydrationLease]
HYDRATE_WAIT_S = 0.5  # maximum wait for another caller that loads the target
_HYDRATE_POLL_S = 0.02
_MAX_ROWS_LOADED = 10_000
_MIN_ROWS_LOADED = 50
_MAX_UNSIZED = 10  # targets that are read without their sizes, by one statement
# What the targets that one page loads may cost, and what each of them costs besides its rows.
_MAX_COST_OF_PAGE = 6_000
_COST_OF_TARGET = 20


def request_rebuild(kind: Kind, target: Target) -> None:
    """Queue a build of a target's Bloom filter. If SQS refuses, the gate requests it again."""
    REBUILDS.try_send(BloomBuildStep(kind, target))


def hydrate(
    pairs: Sequence[tuple[Kind, Target]], wait_s: float | None = None
) -> list[tuple[Kind, Target]]:
    """Load targets from MySQL into Redis; return those that are not loaded after ``wait_s``.

    One caller loads a target, the others wait, by default for 0.5 s. Two round trips, more with
    outboxes and hidden texts; the statements of ``mysql_snapshots.read_snapshots``, one for texts,
    and one for the sizes of more than ten targets. Raises RedisDown, MysqlDown.
    """
    busy, _ = _hydrate(pairs, wait_s, None)
    return busy


def hydrate_page(
    pairs: Sequence[tuple[Kind, Target]],
) -> tuple[list[tuple[Kind, Target]], set[tuple[Kind, Target]]]:
    """Load as many targets as a page may cost, at least one, as ``hydrate``; return those that are
    not loaded after 0.5 s, and those that are left to later pages and that MySQL has all of: while
    no caller could load them, their outboxes were empty. One round trip more to leave some."""
    return _hydrate(pairs, None, _MAX_COST_OF_PAGE)


def _hydrate(
    pairs: Sequence[tuple[Kind, Target]], wait_s: float | None, max_cost: int | None
) -> tuple[list[tuple[Kind, Target]], set[tuple[Kind, Target]]]:
    deadline = Deadline.in_s(HYDRATE_WAIT_S if wait_s is None else wait_s)
    todo, saved = list(dict.fromkeys(pairs)), set[tuple[Kind, Target]]()
    while todo:
        leases = redis_hydration.take_hydration_leases(todo)
        taken = [
            (*w, lease) for w, lease in zip(todo, leases, strict=True) if lease.code == "TAKEN"
        ]
        todo = [w for w, lease in zip(todo, leases, strict=True) if lease.code == "BUSY"]
        if taken:
            sizes: dict[tuple[Kind, Target], Size] = {}
            depth = _depth(len(taken))
            if len(taken) > _MAX_UNSIZED:
                sizes = mysql_snapshots.read_sizes([(kind, target) for kind, target, _ in taken])
            if max_cost is not None:
                taken, beyond, max_cost = _choose(taken, sizes, depth, max_cost)
                saved |= {(kind, target) for kind, target, lease in beyond if not lease.entries}
            todo += _load(taken, sizes, depth)
        if not todo or deadline.has_passed:
            break
        if not taken:
            clock.sleep(_HYDRATE_POLL_S)
    return todo, saved


def _choose(
    taken: Sequence[_Leased], sizes: Mapping[tuple[Kind, Target], Size], depth: int, max_cost: int
) -> tuple[list[_Leased], list[_Leased], int]:
    """Return the targets to load, first targets of which MySQL lacks reactions; the targets whose
    leases were released; and what is left of ``max_cost``."""
    chosen: list[_Leased] = []
    beyond: list[_Leased] = []
    for leased in sorted(taken, key=lambda leased: leased[2].entries == 0):
        size = sizes.get(leased[:2], Size(0, False))
        rows = min(
            max(0, size.total), depth if size.is_sorted or size.total < depth else MAX_UNSORTED
        )
        cost = _COST_OF_TARGET + rows + leased[2].entries
        if cost <= max_cost or (not chosen and max_cost == _MAX_COST_OF_PAGE):
            chosen.append(leased)
            max_cost -= cost
        else:
            beyond.append(leased)
    if beyond:
        redis_hydration.release_hydration_leases(beyond)
    return chosen, beyond, max_cost


def _load(
    taken: Sequence[_Leased], sizes: Mapping[tuple[Kind, Target], Size], depth: int
) -> list[tuple[Kind, Target]]:
    """Load leased targets; return those whose snapshot was refused."""
    if not taken:
        return []
    outboxes = redis_hydration.read_outboxes([(k, t, lease.entries) for k, t, lease in taken])
    snapshots = mysql_snapshots.read_snapshots(
        [(k, t, actors) for (k, t, _), actors in zip(taken, outboxes, strict=True)], depth, sizes
    )
    codes = redis_hydration.hydrate_all(
        [(*leased, snapshot) for leased, snapshot in zip(taken, snapshots, strict=True)]
    )
    _mark_hidden(target for _, target, _ in taken)
    _apply_ahead(
        [
            Commit(kind, target, snapshot.db_version, snapshot.total, False, ())
            for (kind, target, _), snapshot, code in zip(taken, snapshots, codes, strict=True)
            if code == "MORE"
        ]
    )
    return [
        (kind, target)
        for (kind, target, _), code in zip(taken, codes, strict=True)
        if code in ("STALE", "INCOMPLETE")
    ]


def _mark_hidden(loaded: Iterable[Target]) -> None:
    """Mark those targets that a moderator hid. After they were loaded: a text that is hidden later
    is marked by the process that hides it."""
    if hidden := lookup.find_hidden({*loaded}):
        set_visibility({Target(*target): visibility for target, visibility in hidden.items()})


def _apply_ahead(commits: Sequence[Commit]) -> None:
    """Apply commits that arrived while targets were loaded; ``commits`` have no rows."""
    for commit, applied in zip(commits, redis_commits.apply_all(commits), strict=True):
        if applied.rebuild:
            request_rebuild(commit.kind, commit.target)


def _depth(targets_loaded: int) -> int:
    """Return how many of the newest actors of each target are loaded."""
    share = max(_MIN_ROWS_LOADED, _MAX_ROWS_LOADED // targets_loaded)
    return min(reaction_settings().recent_cap, share)


def tombstone(deleted: Sequence[Target]) -> None:
    """Mark deleted targets, so that their gates refuse. Two round trips. Raises RedisDown."""
    markers.mark_deleted(deleted)
    redis_hydration.tombstone_all(deleted)


def set_visibility(texts: Mapping[Target, Visibility]) -> None:
    """Make the gates of loaded targets refuse new reactions to hidden texts, and take those to
    visible ones. One round trip. Raises RedisDown."""
    redis_hydration.set_visibility_all(texts.items())

"""Commits of MySQL in Redis: applied to their targets, then to what Redis has of users."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from plaza.core import counters
from plaza.core.reactions import redis_commits, redis_hydration, redis_rankings
from plaza.core.reactions.hydration import hydrate, request_rebuild
from plaza.core.reactions.kinds import LIKE, Kind
from plaza.core.reactions.model import Commit, PostLikes, Target
from plaza.core.reactions.redis_commits import ApplyResult
from plaza.core.reactions.term_guard import MasterDeposed
from plaza.infra.mysql import participants
from plaza.infra.redis import connections
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.observability import error_fields, record


class PersistedBatch(NamedTuple):
    """The result of a transaction: its commits, the users whose totals count the reactions, the
    follows (actor, target, version) whose holds end when these totals are in Redis, the versions
    of changed rows, whether the master that this process is connected to was deposed, so that it
    must not apply the commits, and the users whom it may have notified."""

    commits: Sequence[Commit]
    users: Sequence[int]
    held: Sequence[tuple[int, str, int]] = ()
    changed_us: Sequence[int] = ()
    is_deposed: bool = False
    notified: Collection[int] = ()


class Applied(NamedTuple):
    """The result of each commit in Redis, and the users of whom Redis has something."""

    results: Sequence[ApplyResult]
    cached: set[int]


def acknowledge(saved: PersistedBatch) -> None:
    """Apply what MySQL has saved to Redis. Three round trips; more after a gap, and two statements
    and three round trips for users whose totals, holds or notifications Redis has. Raises
    RedisDown, MysqlDown."""
    complete(saved, apply(saved))


def apply(saved: PersistedBatch) -> Applied:
    """Apply commits to Redis, without MySQL. Raises RedisDown; MasterDeposed, and closes the
    client, if another node took over before they were saved."""
    if saved.is_deposed:
        connections.forget_client()
        raise MasterDeposed("This process is not connected to the current master of Redis")
    results = redis_commits.apply_all(saved.commits)
    cached = counters.find_cached_users(saved.users, participants.projection_key())
    redis_rankings.project_likes(
        [
            PostLikes(c.target.id, c.total, c.db_version)
            for c in saved.commits
            if c.kind is LIKE and c.target.type == "post"
        ]
    )
    return Applied(results, cached)


def complete(saved: PersistedBatch, applied: Applied) -> None:
    """Update what Redis has of users after commits were applied; load again the targets that missed
    a commit."""
    results, cached = applied
    if cached:
        counters.refresh_projections(sorted(cached))
        participants.refresh(sorted(cached.intersection(saved.notified)))
    # Last: a hold counts for its follow until the projected total includes it.
    counters.release(of_follow for of_follow in saved.held if of_follow[0] in cached)
    lost, cold = [], []
    for commit, (code, outbox_count, rebuild, version) in zip(saved.commits, results, strict=True):
        if rebuild:
            request_rebuild(commit.kind, commit.target)
        if code == "GAP":
            lost.append((commit.kind, commit.target, version))
        elif code == "DROPPED" or (code == "COLD" and outbox_count):
            cold.append((commit.kind, commit.target))
    resync(lost, cold)


def resync(
    lost: Sequence[tuple[Kind, Target, int]], cold: Iterable[tuple[Kind, Target]] = ()
) -> None:
    """Drop the ``lost`` targets that are still at their db_version; hydrate them and ``cold`` ones.
    Without MySQL the next reader or sweep hydrates them. Raises RedisDown."""
    todo = list(cold)
    if lost:
        codes = redis_hydration.evict_all(lost)
        dropped = [
            (kind, target)
            for (kind, target, _), code in zip(lost, codes, strict=True)
            if code == "EVICTED"
        ]
        record("targets_resynced", {"resynced": len(dropped)})
        todo += dropped
    try:
        if todo:
            hydrate(todo, wait_s=0)
    except Unavailable as error:
        if isinstance(error, RedisDown):
            raise
        record("hydration_postponed", targets=len(todo), **error_fields(error))

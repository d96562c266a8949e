"""Queries: totals, the caller's own states, the actors of a target, the targets of an actor."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from plaza.core.reactions import (
    mysql_rows,
    redis_keys,
    redis_queries,
    redis_user_lists,
)
from plaza.core.reactions.hot_totals import hot_totals
from plaza.core.reactions.hydration import hydrate, hydrate_page, request_rebuild
from plaza.core.reactions.kinds import Kind
from plaza.core.reactions.model import (
    Count,
    ReactedTarget,
    ReactionListsBusy,
    ReactionUndecided,
    Reactor,
    Target,
)
from plaza.core.reactions.react import require_existing
from plaza.core.reactions.redis_queries import CachedCount
from plaza.core.reactions.redis_user_lists import LIST_LENGTH
from plaza.core.targets import Existence, lookup
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis import locks, redis
from plaza.infra.redis.commands import RunAll
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.lazy_modules import LazyModule

if TYPE_CHECKING:
    from plaza.core.reactions import mysql_snapshots
else:  # only what Redis lacks is read from MySQL
    mysql_snapshots = LazyModule("plaza.core.reactions.mysql_snapshots")

# Per process: a thousand processes must not overload MySQL while Redis is unavailable.
_fallback_budget = TokenBucket(rate_per_s=20, burst=40)
# Per process: lists are public.
_list_budget = TokenBucket(rate_per_s=50, burst=200)
EARLIEST_LENGTH = 101  # the longest page, and one more as a sign of a next page
_EARLIEST_LOCK_S = 5
_EARLIEST_WAIT_S = 0.5
_EARLIEST_POLL_S = 0.02


def read_counts(
    pairs: Sequence[tuple[Kind, Target]], actor_id: int | None, *, max_loaded: int | None = None
) -> tuple[list[Count], bool]:
    """Return the count of each of ``pairs``, and whether they are exact.

    MySQL, about a second behind, stands in while Redis is unavailable and for a target that another
    caller loads for too long. Anonymous callers (``actor_id`` None) get totals of hot targets that
    are up to 2 s old. As many targets are loaded into Redis as a page may cost, and at most
    ``max_loaded``; MySQL stands in for the others. One round trip when all targets are loaded, two
    more when one is not; no statement when Redis has all targets and the actor's states. Raises
    MysqlDown, RedisDown.
    """
    if actor_id is not None:
        return _read_counts(pairs, actor_id, max_loaded=max_loaded)
    totals = {w: hot for w in pairs if (hot := hot_totals.get((w[0].name, w[1]))) is not None}
    missing = [w for w in pairs if w not in totals]
    source = hot_totals.source_of((kind.name, target) for kind, target in missing)
    counts, exact = _read_counts(missing, None, source, max_loaded) if missing else ([], True)
    for (kind, target), count in zip(missing, counts, strict=True):
        totals[kind, target] = count.total, count.at
        if exact:
            hot_totals.put((kind.name, target), (count.total, count.at))
    return [Count(total, False, at) for total, at in (totals[w] for w in pairs)], exact


def _read_counts(
    pairs: Sequence[tuple[Kind, Target]],
    actor_id: int | None,
    source: RunAll = redis.run_all,
    max_loaded: int | None = None,
) -> tuple[list[Count], bool]:
    try:
        return _read_counts_in_redis(pairs, actor_id, source, max_loaded)
    except RedisDown:
        if not _fallback_budget.take():
            raise
    totals = [total for total, _ in mysql_snapshots.read_counters(pairs)]
    states = [False] * len(pairs)
    if actor_id is not None:
        states = mysql_rows.read_viewer_states(pairs, actor_id)
    return [Count(*pair) for pair in zip(totals, states, strict=True)], False


def read_viewer_states(pairs: Sequence[tuple[Kind, Target]], actor_id: int) -> list[bool | None]:
    """Return whether the actor reacted to each of ``pairs``.

    None when MySQL is needed and unavailable. Costs as of ``read_counts``, and one round trip more
    while MySQL is unavailable. Raises RedisDown; MysqlDown when Redis is unavailable too.
    """
    try:
        counts, _ = read_counts(pairs, actor_id)
    except MysqlDown:
        return [
            cached and cached.viewer_state for cached in redis_queries.read_all(pairs, actor_id)
        ]
    return [count.viewer_state for count in counts]


def _read_counts_in_redis(
    pairs: Sequence[tuple[Kind, Target]],
    actor_id: int | None,
    source: RunAll,
    max_loaded: int | None,
) -> tuple[list[Count], bool]:
    cached, exact = redis_queries.read_all(pairs, actor_id, source), True
    known = [
        Count(c.total, c.viewer_state, c.at)
        for c in cached
        if c is not None and c.viewer_state is not None and not c.rebuild
    ]
    if len(known) == len(pairs):
        return known, True
    if cold := [w for w, c in zip(pairs, cached, strict=True) if c is None]:
        loaded, exact = _read_cold(cold, actor_id, max_loaded)
        cached = [loaded.get(w) if c is None else c for w, c in zip(pairs, cached, strict=True)]
    for (kind, target), c in zip(pairs, cached, strict=True):
        if c and c.rebuild:
            request_rebuild(kind, target)
    missing = [w for w, c in zip(pairs, cached, strict=True) if c is None]
    totals = {
        w: total
        for w, (total, _) in zip(missing, mysql_snapshots.read_counters(missing), strict=True)
    }
    unknown = [w for w, c in zip(pairs, cached, strict=True) if c is None or c.viewer_state is None]
    states: dict[tuple[Kind, Target], bool] = {}
    if actor_id is not None and unknown:
        stored = mysql_rows.read_viewer_states(unknown, actor_id)
        states = dict(zip(unknown, stored, strict=True))
    counts = [
        Count(
            totals[w] if c is None else c.total,
            states.get(w, False) if c is None or c.viewer_state is None else c.viewer_state,
            None if c is None else c.at,
        )
        for w, c in zip(pairs, cached, strict=True)
    ]
    return counts, exact


def _read_cold(
    cold: Sequence[tuple[Kind, Target]], actor_id: int | None, max_loaded: int | None
) -> tuple[dict[tuple[Kind, Target], CachedCount], bool]:
    """Hydrate cold targets; return the counts of those that are not deleted, and exactness.

    Not exact when MySQL, which lacks the outbox, stands in for a target beyond ``max_loaded``, for
    one with an outbox that is left to a later page, or for one that another caller loads for too
    long. Raises ReactionUndecided when the fallback budget for the last is empty.
    """
    existence = lookup.find_all({target for _, target in cold})
    missing = {
        w: CachedCount(0, False, False) for w in cold if existence[w[1]] is Existence.MISSING
    }
    live = [w for w in cold if existence[w[1]] is Existence.LIVE]
    busy, saved = hydrate_page(live[:max_loaded])
    if busy and not _fallback_budget.take():
        raise ReactionUndecided(f"{busy[0][1]} is being loaded; try again.")
    cached = redis_queries.read_all(live, actor_id) if live else []
    loaded = {w: c for w, c in zip(live, cached, strict=True) if c is not None}
    return missing | loaded, saved.issuperset(set(live) - loaded.keys())


def list_reactors(
    kind: Kind,
    target: Target,
    after: Reactor | None,
    latest: bool,
    limit: int,
    source: RunAll = redis.run_all,
) -> tuple[list[Reactor], Reactor | None]:
    """Return saved reactions to a target, earliest or latest first, and the next page's ``after``.

    The latter is None at the end. Outbox entries are not listed. Redis, by ``source``, serves the
    newest actors and the cached first page of the earliest, MySQL the others. Raises TargetMissing,
    TargetDeleted, ReactionListsBusy, MysqlDown.
    """
    require_existing(target)
    try:
        is_complete, newest = _newest_reactors(kind, target, after, latest, limit, source)
        if not is_complete and not latest and after is None and limit < EARLIEST_LENGTH:
            return _paginate(_load_earliest(kind, target, limit), limit)
    except RedisDown:
        is_complete, newest = False, []
    if is_complete or (latest and len(newest) > limit):
        return _paginate(newest, limit)
    _spend_list_budget()
    if not latest:
        return _paginate(mysql_rows.read_reactors(kind, target, after, latest, limit + 1), limit)
    begin = newest[-1] if newest else after
    older = mysql_rows.read_reactors(kind, target, begin, latest, limit + 1 - len(newest))
    in_redis = {reactor.actor_id for reactor in newest}
    return _paginate(newest + [r for r in older if r.actor_id not in in_redis], limit)


def list_newest(pairs: Sequence[tuple[Kind, Target]], count: int) -> list[list[int]]:
    """Return the ``count`` newest saved actors of each of ``pairs``, newest first.

    One round trip, and one statement for the targets that Redis lacks. Raises ReactionListsBusy,
    MysqlDown.
    """
    pages: list[list[Reactor] | None] = [None] * len(pairs)
    with suppress(RedisDown):
        pages = redis_queries.read_newest(pairs, count)
    if missing := [i for i, page in enumerate(pages) if page is None]:
        _spend_list_budget()
        stored = mysql_rows.read_newest([pairs[i] for i in missing], count)
        for i, page in zip(missing, stored, strict=True):
            pages[i] = page
    return [[reactor.actor_id for reactor in page or ()][:count] for page in pages]


def list_key(kind: Kind, target: Target) -> str:
    """Return the key of Redis that has the newest reactions to a target."""
    return redis_keys.keys_of(kind.name, target).recent


def _load_earliest(kind: Kind, target: Target, limit: int) -> list[Reactor]:
    """Return the earliest actors. One reader reads them from MySQL and caches them in Redis; others
    wait for 0.5 s at most. Raises ReactionListsBusy, RedisDown, MysqlDown."""
    deadline = Deadline.in_s(_EARLIEST_WAIT_S)
    lock_key = f"{redis_keys.keys_of(kind.name, target).earliest}:lock"
    while (lock := locks.try_lock(lock_key, _EARLIEST_LOCK_S)) is None:
        if deadline.has_passed:
            break
        clock.sleep(_EARLIEST_POLL_S)
        page = redis_queries.read_page(kind, target, None, False, limit + 1)
        if page is not None and page[0]:
            return _in_order(page[1], latest=False)
    try:
        _spend_list_budget()
        db_version, earliest = mysql_rows.read_earliest(kind, target, EARLIEST_LENGTH)
        if len(earliest) == EARLIEST_LENGTH:
            redis_queries.cache_earliest(kind, target, db_version, earliest)
        return earliest
    finally:
        if lock is not None:
            with suppress(RedisDown):  # the lock expires
                locks.unlock(lock)


def _spend_list_budget() -> None:
    if not _list_budget.take():
        raise ReactionListsBusy("Too many lists are being read; try again.", retry_after_s=1)


def _newest_reactors(
    kind: Kind,
    target: Target,
    after: Reactor | None,
    latest: bool,
    limit: int,
    source: RunAll,
) -> tuple[bool, list[Reactor]]:
    # One more as a sign of a next page, and one for ``after``, which the page includes.
    page = redis_queries.read_page(kind, target, after, latest, limit + 2, source)
    if page is None and source is not redis.run_all:
        page = redis_queries.read_page(kind, target, after, latest, limit + 2)
    if page is None:
        hydrate([(kind, target)])
        page = redis_queries.read_page(kind, target, after, latest, limit + 2)
    is_complete, reactors = page or (False, [])
    if after is not None:
        reactors = [reactor for reactor in reactors if _is_past(reactor, after, latest)]
    return is_complete, _in_order(reactors, latest)


def _is_past(reactor: Reactor, after: Reactor, latest: bool) -> bool:
    key, last = (reactor.version_us, reactor.actor_id), (after.version_us, after.actor_id)
    return key < last if latest else key > last


def _in_order(reactors: list[Reactor], latest: bool) -> list[Reactor]:
    return sorted(reactors, key=lambda r: (r.version_us, r.actor_id), reverse=latest)


def _paginate(page: list[Reactor], limit: int) -> tuple[list[Reactor], Reactor | None]:
    return page[:limit], page[limit - 1] if len(page) > limit else None


def list_reacted(
    kind: Kind, actor_id: int, after: ReactedTarget | None, limit: int
) -> tuple[list[ReactedTarget], ReactedTarget | None]:
    """Return an actor's targets, newest first, and the next page's ``after``, None at the end. The
    list in Redis is complete above its floor. Raises ReactionListsBusy, MysqlDown."""
    floor_us, newest = _newest_reacted(kind, actor_id)
    page = [
        r
        for r in newest
        if r.version_us > floor_us and (after is None or _order(r) < _order(after))
    ]
    page.sort(key=_order, reverse=True)
    if len(page) <= limit and floor_us > 0:
        begin = page[-1] if page else after
        _spend_list_budget()
        page += mysql_rows.read_reacted(kind, actor_id, begin, limit + 1 - len(page))
    return page[:limit], page[limit - 1] if len(page) > limit else None


def _newest_reacted(kind: Kind, actor_id: int) -> tuple[int, list[ReactedTarget]]:
    """Return (floor_us, newest); a floor above all versions while Redis is unavailable."""
    try:
        cached = redis_user_lists.read_list(kind, actor_id)
        if cached is not None:
            return cached
        _spend_list_budget()
        lease = redis_user_lists.take_lease(kind, actor_id)
        newest = mysql_rows.read_reacted(kind, actor_id, None, LIST_LENGTH)
        floor_us = newest[-1].version_us if len(newest) == LIST_LENGTH else 0
        redis_user_lists.fill_list(kind, actor_id, lease, newest, floor_us)
        return floor_us, newest
    except RedisDown:
        return 2**53, []


def _order(reacted: ReactedTarget) -> tuple[int, str, int]:
    return reacted.version_us, *reacted.target

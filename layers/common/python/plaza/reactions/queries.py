"""Reading reactions: totals and mine, who reacted, what I reacted to."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from plaza.infra import clock, redis
from plaza.infra.clock import Deadline
from plaza.infra.mysql import MysqlDown
from plaza.infra.redis import RedisDown
from plaza.infra.token_bucket import TokenBucket
from plaza.reactions import mysql_reactions, redis_keys, redis_queries, redis_user_lists
from plaza.reactions.hot_totals import hot_totals
from plaza.reactions.model import (
    Count,
    Kind,
    ReactedTarget,
    ReactionListsBusy,
    ReactionUndecided,
    Reactor,
    Target,
)
from plaza.reactions.react import hydrate, request_rebuild, require_existing
from plaza.reactions.redis_queries import CachedCount
from plaza.reactions.redis_user_lists import LIST_LENGTH
from plaza.targets import Existence, lookup

# What one process may ask MySQL for in Redis' place: a thousand processes must not take it along.
_fallback_budget = TokenBucket(rate_per_s=20, burst=40)
# Lists are public, so what one process may read of them from MySQL is limited.
_list_budget = TokenBucket(rate_per_s=50, burst=200)
EARLIEST_LENGTH = 101  # the longest page, and one more, which tells that there is another page
_EARLIEST_LOCK_S = 5
_EARLIEST_WAIT_S = 0.5
_EARLIEST_POLL_S = 0.02


def read_counts(
    wanted: Sequence[tuple[Kind, Target]], actor_id: int | None
) -> tuple[list[Count], bool]:
    """The count of each of ``wanted``, and whether they are exact (MySQL's lag by a second or so).

    MySQL answers while Redis is unavailable, and for a target that another caller loads for long.

    Totals of hot targets are up to a second old where nobody in particular asks. Round trips: one
    to Redis when all is warm, two more when some is cold; to MySQL none when all is warm and
    known. Raises MysqlDown, RedisDown.
    """
    if actor_id is not None:
        return _read_counts(wanted, actor_id)
    held = {w: total for w in wanted if (total := hot_totals.get((w[0].name, w[1]))) is not None}
    asked = [w for w in wanted if w not in held]
    counts, exact = _read_counts(asked, None) if asked else ([], True)
    for (kind, target), found in zip(asked, counts, strict=True):
        held[kind, target] = found.total
        if exact:
            hot_totals.put((kind.name, target), found.total)
    return [Count(held[w], False) for w in wanted], exact


def _read_counts(
    wanted: Sequence[tuple[Kind, Target]], actor_id: int | None
) -> tuple[list[Count], bool]:
    try:
        return _read_counts_in_redis(wanted, actor_id)
    except RedisDown:
        if not _fallback_budget.take():
            raise
    totals = [total for total, _ in mysql_reactions.read_counters(wanted)]
    mine = [False] * len(wanted)
    if actor_id is not None:
        mine = mysql_reactions.read_viewer_states(wanted, actor_id)
    return [Count(*pair) for pair in zip(totals, mine, strict=True)], False


def read_viewer_states(wanted: Sequence[tuple[Kind, Target]], actor_id: int) -> list[bool | None]:
    """Whether the actor reacted to each of ``wanted``; None where only MySQL knows and it is away.

    Round trips as of ``read_counts``, one more while MySQL is away. Raises RedisDown, and MysqlDown when
    Redis is away too.
    """
    try:
        counts, _ = read_counts(wanted, actor_id)
    except MysqlDown:
        return [seen and seen.viewer_state for seen in redis_queries.read_all(wanted, actor_id)]
    return [found.viewer_state for found in counts]


def _read_counts_in_redis(
    wanted: Sequence[tuple[Kind, Target]], actor_id: int | None
) -> tuple[list[Count], bool]:
    seen, exact = redis_queries.read_all(wanted, actor_id), True
    if cold := [w for w, s in zip(wanted, seen, strict=True) if s is None]:
        loaded, exact = _read_cold(cold, actor_id)
        seen = [loaded.get(w) if s is None else s for w, s in zip(wanted, seen, strict=True)]
    for (kind, target), s in zip(wanted, seen, strict=True):
        if s and s.rebuild:
            request_rebuild(kind, target)
    missing = [w for w, s in zip(wanted, seen, strict=True) if s is None]
    totals = {
        w: total
        for w, (total, _) in zip(missing, mysql_reactions.read_counters(missing), strict=True)
    }
    unknown = [w for w, s in zip(wanted, seen, strict=True) if s is None or s.viewer_state is None]
    mine: dict[tuple[Kind, Target], bool] = {}
    if actor_id is not None and unknown:
        answers = mysql_reactions.read_viewer_states(unknown, actor_id)
        mine = dict(zip(unknown, answers, strict=True))
    counts = [
        Count(
            totals[w] if s is None else s.total,
            mine.get(w, False) if s is None or s.viewer_state is None else s.viewer_state,
        )
        for w, s in zip(wanted, seen, strict=True)
    ]
    return counts, exact


def _read_cold(
    cold: Sequence[tuple[Kind, Target]], actor_id: int | None
) -> tuple[dict[tuple[Kind, Target], CachedCount], bool]:
    """What is known of cold targets once those that exist are loaded; not of deleted ones.

    False when MySQL stands in for one that has been loading for too long: its outbox is left out.
    Raises ReactionUndecided for such a target while MySQL's budget is spent.
    """
    found = lookup.find_all({target for _, target in cold})
    none = {w: CachedCount(0, False, False) for w in cold if found[w[1]] is Existence.MISSING}
    there = [w for w in cold if found[w[1]] is Existence.LIVE]
    left = hydrate(there) if there else []
    if left and not _fallback_budget.take():
        raise ReactionUndecided(f"{left[0][1]} is being loaded")
    seen = redis_queries.read_all(there, actor_id) if there else []
    loaded = {w: s for w, s in zip(there, seen, strict=True) if s is not None}
    return none | loaded, None not in seen


def list_reactors(
    kind: Kind, target: Target, after: Reactor | None, latest: bool, limit: int
) -> tuple[list[Reactor], Reactor | None]:
    """Saved reactions to a target, earliest or latest first, and where the next page begins.

    (None: the end.) What is accepted and not saved yet is not listed. The newest are in Redis, the
    first page of the earliest once it was read, all in MySQL. Raises TargetMissing, TargetDeleted,
    ReactionListsBusy, MysqlDown.
    """
    require_existing(target)
    try:
        is_whole, newest = _newest_reactors(kind, target, after, latest, limit)
        if not is_whole and not latest and after is None and limit < EARLIEST_LENGTH:
            return _paginate(_load_earliest(kind, target, limit), limit)
    except RedisDown:
        is_whole, newest = False, []
    if is_whole or (latest and len(newest) > limit):
        return _paginate(newest, limit)
    _spend_list_budget()
    if not latest:
        return _paginate(
            mysql_reactions.read_reactors(kind, target, after, latest, limit + 1), limit
        )
    begin = newest[-1] if newest else after
    older = mysql_reactions.read_reactors(kind, target, begin, latest, limit + 1 - len(newest))
    in_redis = {reactor.actor_id for reactor in newest}
    return _paginate(newest + [r for r in older if r.actor_id not in in_redis], limit)


def _load_earliest(kind: Kind, target: Target, limit: int) -> list[Reactor]:
    """Returns the earliest actors, which one of all readers reads from MySQL for Redis to keep.

    The others wait for it, 0.5 s at most. One statement at most. Raises ReactionListsBusy, RedisDown,
    MysqlDown.
    """
    deadline = Deadline.in_s(_EARLIEST_WAIT_S)
    lock_key = f"{redis_keys.keys_of(kind.name, target).earliest}:lock"
    while (lock := redis.try_lock(lock_key, _EARLIEST_LOCK_S)) is None:
        if deadline.has_passed:
            break
        clock.sleep(_EARLIEST_POLL_S)
        page = redis_queries.read_page(kind, target, None, False, limit + 1)
        if page is not None and page[0]:
            return _in_order(page[1], latest=False)
    try:
        _spend_list_budget()
        n, earliest = mysql_reactions.read_earliest(kind, target, EARLIEST_LENGTH)
        if len(earliest) == EARLIEST_LENGTH:
            redis_queries.cache_earliest(kind, target, n, earliest)
        return earliest
    finally:
        if lock is not None:
            with suppress(RedisDown):  # then it ends by itself
                redis.unlock(lock)


def _spend_list_budget() -> None:
    """Take one page from the budget. Raises ReactionListsBusy when it is empty."""
    if not _list_budget.take():
        raise ReactionListsBusy("Too many lists are being read", retry_after_s=1)


def _newest_reactors(
    kind: Kind, target: Target, after: Reactor | None, latest: bool, limit: int
) -> tuple[bool, list[Reactor]]:
    # One more for the next page, and one for ``after`` itself, which comes along.
    page = redis_queries.read_page(kind, target, after, latest, limit + 2)
    if page is None:
        hydrate([(kind, target)])
        page = redis_queries.read_page(kind, target, after, latest, limit + 2)
    is_complete, found = page or (False, [])
    if after is not None:
        found = [reactor for reactor in found if _is_past(reactor, after, latest)]
    return is_complete, _in_order(found, latest)


def _is_past(reactor: Reactor, after: Reactor, latest: bool) -> bool:
    here, there = (reactor.version_us, reactor.actor_id), (after.version_us, after.actor_id)
    return here < there if latest else here > there


def _in_order(found: list[Reactor], latest: bool) -> list[Reactor]:
    return sorted(found, key=lambda r: (r.version_us, r.actor_id), reverse=latest)


def _paginate(page: list[Reactor], limit: int) -> tuple[list[Reactor], Reactor | None]:
    return page[:limit], page[limit - 1] if len(page) > limit else None


def list_reacted(
    kind: Kind, actor_id: int, after: ReactedTarget | None, limit: int
) -> tuple[list[ReactedTarget], ReactedTarget | None]:
    """What a user reacted to, newest first, and where the next page begins (None: the end).

    The list in Redis is whole above its floor and says nothing below; MySQL has the rest, floor
    included. Raises ReactionListsBusy, MysqlDown.
    """
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
        page += mysql_reactions.read_reacted(kind, actor_id, begin, limit + 1 - len(page))
    return page[:limit], page[limit - 1] if len(page) > limit else None


def _newest_reacted(kind: Kind, actor_id: int) -> tuple[int, list[ReactedTarget]]:
    """(floor_us, newest); a floor above everything when Redis can't say."""
    try:
        found = redis_user_lists.read_list(kind, actor_id)
        if found is not None:
            return found
        _spend_list_budget()
        lease = redis_user_lists.take_lease(kind, actor_id)
        newest = mysql_reactions.read_reacted(kind, actor_id, None, LIST_LENGTH)
        floor_us = newest[-1].version_us if len(newest) == LIST_LENGTH else 0
        redis_user_lists.fill_list(kind, actor_id, lease, newest, floor_us)
        return floor_us, newest
    except RedisDown:
        return 2**53, []


def _order(reacted: ReactedTarget) -> tuple[int, str, int]:
    return reacted.version_us, *reacted.target

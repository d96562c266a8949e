"""Recommend the best reviews of a shop from a list that is rebuilt in the background."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plaza.core.reactions import Target
from plaza.core.switches import current as current_switches
from plaza.core.switches import refresh as switch_refresh
from plaza.infra.redis.commands import RunAll
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.hot_reads import HotReads
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.errors import SwitchedOff
from plaza.infra.runtime.observability import record
from plaza.social.content import queries
from plaza.social.content.model import ContentView
from plaza.social.recommendations import mysql_recommendations, redis_store
from plaza.social.recommendations.model import (
    MAX_SHOPS_PER_MESSAGE,
    RebuildLists,
    RecommendedCursor,
    RecommendedPage,
    ReviewScore,
)
from plaza.social.recommendations.queues import RECOMMENDATIONS
from plaza.social.recommendations.redis_store import CachedList

__all__ = [
    "MAX_RUN_S",
    "RECOMMENDATIONS",
    "explain_score",
    "rebuild_recommendations",
    "recommend",
    "refresh_recommendations",
    "warm_lists",
]

MAX_RUN_S = 40
_SHOPS_PER_PAGE = 1_000
_MAX_BACKLOG = 1_000
_MAX_ROUNDS = 3

# Lists that one process reads from MySQL while Redis is unavailable.
_fallback_budget = TokenBucket(rate_per_s=20, burst=40)
# Lists are built in the background and the same for all callers, so all may get one 1 s late.
_hot_lists: HotReads[tuple[int, int], CachedList] = HotReads(
    lambda key: redis_store.keys_of(key[0])[0]
)


def recommend(
    shop_id: int, cursor: RecommendedCursor, limit: int, actor_id: int | None
) -> RecommendedPage:
    """Return the best reviews of a shop from ``cursor`` on.

    The page is empty until the list is built; the first read requests that. While operators allow
    cached lists only, it is the list as last built, without reviews whose texts are not cached.
    Raises ShopMissing, ShopDeleted, MysqlDown, RedisDown, SwitchedOff.
    """
    cached_only = current_switches().cached_lists_only
    queries.require_shop(shop_id)
    review_ids, number = _read_list(shop_id, cursor.number)
    views: list[ContentView] = []
    offset = cursor.offset
    # Deleted reviews leave gaps, which the following reviews fill.
    for _ in range(_MAX_ROUNDS):
        part = review_ids[offset : offset + limit - len(views)]
        reviews = queries.read_reviews(part, actor_id, cached_only=cached_only)
        views += [reviews[review_id] for review_id in part if review_id in reviews]
        offset += len(part)
        if len(views) == limit or offset >= len(review_ids):
            break
    return RecommendedPage(
        views, RecommendedCursor(offset, number) if offset < len(review_ids) else None
    )


def explain_score(review_id: int) -> ReviewScore:
    """Return the current score of a review, and its rank in the latest list. Two statements and
    one round trip. Raises ContentMissing, ContentDeleted, MysqlDown, RedisDown."""
    target = Target("review", review_id)
    text, deleted = queries.read_stored(target)
    queries.require_not_deleted(target, deleted)
    shop_id = text.parent_id or 0
    score, components = mysql_recommendations.read_score(review_id)
    listed, _ = _read_list(shop_id)
    rank = listed.index(review_id) + 1 if review_id in listed else None
    return ReviewScore(review_id, shop_id, score, components, rank)


def _read_list(shop_id: int, number: int = 0) -> tuple[Sequence[int], int]:
    """Return the reviews of a list and its number, 0 for one that is not stored."""
    try:
        cached = _hot_lists.read_all([(shop_id, number)], _load_list)[shop_id, number]
        if not cached.number:  # not built yet: it may be in a moment
            _hot_lists.drop((shop_id, number))
    except RedisDown as error:
        if current_switches().cached_lists_only:
            raise SwitchedOff("Recommendations are served from the cache only.") from error
        if not _fallback_budget.take():
            raise
        return mysql_recommendations.read_best_reviews([shop_id])[shop_id].review_ids, 0
    return cached.review_ids, cached.number


def _load_list(keys: Sequence[tuple[int, int]], _: RunAll) -> dict[tuple[int, int], CachedList]:
    """Read one list from the master, which claims its rebuild, and request the rebuild."""
    [(shop_id, number)] = keys
    cached = redis_store.read_list(shop_id, number)
    if cached.needs_rebuild and not current_switches().cached_lists_only:
        # If SQS refuses, a reader requests it again after 2 s.
        RECOMMENDATIONS.try_send(RebuildLists([shop_id]))
    return {(shop_id, number): cached}


@RECOMMENDATIONS.consumer
def rebuild_recommendations(rebuilds: Sequence[RebuildLists]) -> None:
    """Rebuild the lists of shops from MySQL. Safe to repeat.

    Of two concurrent rebuilds of a list the one that began last replaces it, as the other may have
    read MySQL earlier. Two round trips and one statement, one more if a list was marked as stale.
    Raises MysqlDown, RedisDown.
    """
    shop_ids = sorted({shop_id for rebuild in rebuilds for shop_id in rebuild.shop_ids})
    rebuild = redis_store.begin_rebuilds(shop_ids)
    lists = mysql_recommendations.read_best_reviews(shop_ids)
    swapped = redis_store.replace_lists(lists, rebuild)
    mysql_recommendations.clear_stale_marks({shop_id: lists[shop_id] for shop_id in swapped})
    record("recommendations_rebuilt", {"lists_rebuilt": len(swapped)})


def warm_lists(targets: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Rebuild the lists of the shops of the reviews in ``targets``; return the shops. One statement
    more than ``rebuild_recommendations``, none without reviews. Raises as that."""
    review_ids = sorted(
        {target_id for target_type, target_id in targets if target_type == "review"}
    )
    shop_ids = mysql_recommendations.find_shops(review_ids)
    if shop_ids:
        rebuild_recommendations([RebuildLists(shop_ids)])
    return [("shop", shop_id) for shop_id in shop_ids]


def refresh_recommendations() -> int:
    """Queue the rebuild of each stale list; return their number. Queues nothing while the backlog
    is above 1,000, or while operators allow cached lists only. A list stays stale until it is
    rebuilt. Raises MysqlDown, QueueDown."""
    backlog = RECOMMENDATIONS.count_backlog()
    if backlog > _MAX_BACKLOG or switch_refresh.read().cached_lists_only:
        record("refresh_skipped", {"refreshes_skipped": 1}, backlog=backlog)
        return 0
    deadline, requested, after_id = Deadline.in_s(MAX_RUN_S), 0, 0
    while not deadline.has_passed:
        shop_ids = mysql_recommendations.find_stale_shops(after_id, _SHOPS_PER_PAGE)
        parts = [
            shop_ids[i : i + MAX_SHOPS_PER_MESSAGE]
            for i in range(0, len(shop_ids), MAX_SHOPS_PER_MESSAGE)
        ]
        RECOMMENDATIONS.send_all(map(RebuildLists, parts))
        requested += len(shop_ids)
        if len(shop_ids) < _SHOPS_PER_PAGE:
            break
        after_id = shop_ids[-1]
    record("recommendations_refreshed", {"rebuilds_requested": requested})
    return requested

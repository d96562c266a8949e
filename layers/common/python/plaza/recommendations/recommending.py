"""Recommending the best reviews of a shop: the list is made in the background and read as it is."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.content import Whole, reading
from plaza.infra.clock import Deadline
from plaza.infra.observability import cause, record
from plaza.infra.queues import QueueDown
from plaza.infra.redis import RedisDown
from plaza.infra.token_bucket import TokenBucket
from plaza.recommendations import mysql_recommendations, redis_recommendations
from plaza.recommendations.queues import RECOMMENDATIONS
from plaza.recommendations.recommendations import MOST_SHOPS, Rebuild, RecommendedPage

__all__ = [
    "MOST_S",
    "RECOMMENDATIONS",
    "rebuild_recommendations",
    "recommend",
    "refresh_recommendations",
]

MOST_S = 40
_SHOPS_PER_PAGE = 1_000
_MOST_BACKLOG = 1_000
_PAGES_TRIED = 3

# What one process may ask MySQL for in Redis' place: a thousand processes must not take it along.
_instead_of_redis = TokenBucket(rate_per_s=20, burst=40)


def recommend(shop_id: int, place: int, limit: int, actor_id: int | None) -> RecommendedPage:
    """The best reviews of a shop from ``place`` (0: the best) on, with what is counted about them.

    Empty for who asks first, until the list is made. Raises ShopMissing, ShopGone, MysqlDown,
    RedisDown.
    """
    reading.require_shop(shop_id)
    review_ids = _read_list(shop_id)
    found: list[Whole] = []
    # Deleted reviews leave gaps: a page is filled up from what follows.
    for _ in range(_PAGES_TRIED):
        part = review_ids[place : place + limit - len(found)]
        reviews = reading.read_reviews(part, actor_id)
        found += [reviews[review_id] for review_id in part if review_id in reviews]
        place += len(part)
        if len(found) == limit or place >= len(review_ids):
            break
    return RecommendedPage(found, place if place < len(review_ids) else None)


def _read_list(shop_id: int) -> Sequence[int]:
    try:
        look = redis_recommendations.look(shop_id)
    except RedisDown:
        if not _instead_of_redis.take():
            raise
        return mysql_recommendations.read_best([shop_id])[shop_id].review_ids
    if look.ask:
        try:
            RECOMMENDATIONS.send(Rebuild([shop_id]))
        except QueueDown as error:  # the next reader asks, in two seconds
            record("rebuild_unasked", {"rebuilds_unasked": 1}, shop_id=shop_id, **cause(error))
    return look.review_ids


@RECOMMENDATIONS.consumer
def rebuild_recommendations(rebuilds: Sequence[Rebuild]) -> None:
    """Make the lists of shops again, as MySQL has them now.

    Of two rebuilds of a list the one that began last puts it in place: the other may have read
    MySQL before. One statement to read, two round trips, one statement more if they were stale.
    Safe to repeat. Raises MysqlDown, RedisDown.
    """
    shop_ids = sorted({shop_id for rebuild in rebuilds for shop_id in rebuild.shop_ids})
    rebuild = redis_recommendations.begin_rebuilds(shop_ids)
    lists = mysql_recommendations.read_best(shop_ids)
    swapped = redis_recommendations.swap_all(lists, rebuild)
    mysql_recommendations.mark_fresh({shop_id: lists[shop_id] for shop_id in swapped})
    record("recommendations_rebuilt", {"lists_rebuilt": len(swapped)})


def refresh_recommendations() -> int:
    """Ask for the rebuild of each list that isn't up to date with the votes; how many.

    Nothing is asked for while the queue is behind. A list stays due until its rebuild is done.
    Raises MysqlDown, QueueDown.
    """
    waiting = RECOMMENDATIONS.count_backlog()
    if waiting > _MOST_BACKLOG:
        record("refresh_held_back", {"refreshes_held_back": 1}, backlog=waiting)
        return 0
    deadline, asked, after_id = Deadline.in_s(MOST_S), 0, 0
    while not deadline.has_passed:
        shop_ids = mysql_recommendations.find_stale(after_id, _SHOPS_PER_PAGE)
        parts = [shop_ids[i : i + MOST_SHOPS] for i in range(0, len(shop_ids), MOST_SHOPS)]
        RECOMMENDATIONS.send_all(map(Rebuild, parts))
        asked += len(shop_ids)
        if len(shop_ids) < _SHOPS_PER_PAGE:
            break
        after_id = shop_ids[-1]
    record("recommendations_refreshed", {"lists_due": asked})
    return asked

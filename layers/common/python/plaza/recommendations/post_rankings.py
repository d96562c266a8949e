"""Ranking posts by likes: of all time, of a week, of a day.

The ranking of all time is kept up by those who save likes; a schedule heals its tail and removes
what was deleted. A window is so many whole hours and the one that runs, and is made anew each time.
"""

from __future__ import annotations

from collections.abc import Mapping

from plaza import content
from plaza.content import queries
from plaza.infra import clock
from plaza.infra.observability import record
from plaza.infra.redis import RedisDown
from plaza.infra.token_bucket import TokenBucket
from plaza.reactions import rankings
from plaza.reactions.model import MAX_RANKED, MAX_RANKING_LISTED, PostRank, Window
from plaza.recommendations import mysql_rankings
from plaza.recommendations.model import RankedPost, RankingPage

WINDOW_HOURS: Mapping[Window, int] = {"day": 24, "week": 7 * 24}
_HOUR_US = 3_600_000_000
_PAGES_TRIED = 3

# What one process may ask MySQL for in Redis' place: a thousand processes must not take it along.
_fallback_budget = TokenBucket(rate_per_s=5, burst=10)


def refresh_rankings() -> int:
    """Bring all rankings in Redis to what MySQL has; how many posts are in that of all time.

    Safe to repeat, also by two at one time: the newer stays. Raises MysqlDown, RedisDown.
    """
    at_us = clock.now_us()
    most_liked = mysql_rankings.read_most_liked(MAX_RANKED)
    others = set(rankings.read_ranked_posts()) - {post.post_id for post in most_liked}
    fallen = mysql_rankings.read_likes(sorted(others))
    rankings.project_likes(fallen)
    rankings.mark_ranking_complete(most_liked, at_us)
    for window, hours in WINDOW_HOURS.items():
        last_hour = at_us // _HOUR_US
        ranked = mysql_rankings.read_window(last_hour - hours + 1, last_hour, MAX_RANKED)
        rankings.swap_ranking(window, ranked, at_us)
    record("rankings_refreshed", ranked=len(most_liked), rechecked=len(fallen))
    return len(most_liked)


def list_most_liked(
    window: Window, after: PostRank | None, limit: int, actor_id: int | None
) -> RankingPage:
    """A page of the most liked posts that are there, with what is counted about them.

    No more than the first 1,000 are shown. Of equals the newer post stands first.
    Raises MysqlDown, RedisDown.
    """
    found: list[RankedPost] = []
    # Deleted posts leave gaps: a page is filled up from what follows.
    for _ in range(_PAGES_TRIED):
        wanted = limit - len(found)
        ranked = _read(window, after, wanted + 1)
        more, ranked = len(ranked) > wanted, ranked[:wanted]
        posts = queries.read_posts([r.post_id for r in ranked], actor_id)
        found += [RankedPost(posts[r.post_id], r.likes) for r in ranked if r.post_id in posts]
        after = ranked[-1] if ranked else after
        if not more or len(found) == limit:
            break
    fitting = content.count_fitting([post.post.text for post in found])
    if fitting < len(found):
        last = found[fitting - 1]
        return RankingPage(found[:fitting], PostRank(last.likes, last.post.text.id))
    return RankingPage(found, after if more else None)


def _read(window: Window, after: PostRank | None, limit: int) -> list[PostRank]:
    """From Redis; from MySQL while Redis is away or never had the ranking whole."""
    try:
        ranked = rankings.read_ranking(window, after, limit)
        if ranked is not None:
            return ranked
        away = RedisDown("The ranking is not made yet")
    except RedisDown as error:
        away = error
    if not _fallback_budget.take():
        raise away
    if window == "all":
        return mysql_rankings.read_ranking(after, limit, MAX_RANKING_LISTED)
    last_hour = clock.now_us() // _HOUR_US
    first_hour = last_hour - WINDOW_HOURS[window] + 1
    return mysql_rankings.read_window_ranking(
        first_hour, last_hour, after, limit, MAX_RANKING_LISTED
    )

"""Rankings of posts by likes: of all time, of the week, of the day, and hot: by decayed likes.

Consumers that store likes update the ranking of all time; a schedule repairs its tail and removes
deleted posts. A window is the current hour and the whole hours before it, rebuilt by each run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plaza.core.reactions import rankings
from plaza.core.reactions.model import MAX_RANKED, MAX_RANKING_LISTED, PostRank, Window
from plaza.core.switches import current as current_switches
from plaza.core.switches import refresh as switch_refresh
from plaza.infra.redis.commands import RunAll
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.hot_reads import HotReads
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import SwitchedOff
from plaza.infra.runtime.observability import record
from plaza.social.content import queries
from plaza.social.content.model import count_fitting
from plaza.social.recommendations import mysql_rankings
from plaza.social.recommendations.model import (
    HOT_HALF_LIVES,
    MAX_HOT_HOURS,
    RankedHours,
    RankedPost,
    RankingPage,
)
from plaza.social.recommendations.settings import ranking_settings

WINDOW_HOURS: Mapping[Window, int] = {"day": 24, "week": 7 * 24}
WINDOWS: Sequence[Window] = ("hot", *WINDOW_HOURS)
_HOUR_US = 3_600_000_000
_MAX_ROUNDS = 3

# Pages that one process reads from MySQL while Redis is unavailable.
_fallback_budget = TokenBucket(rate_per_s=5, burst=10)
# Pages of hot rankings, for all callers: none depends on who reads.
_PageKey = tuple[Window, PostRank | None, int]
_hot_pages: HotReads[_PageKey, list[PostRank]] = HotReads(lambda key: rankings.ranking_key(key[0]))


def refresh_rankings() -> int:
    """Update all rankings in Redis from MySQL; return the length of the ranking of all time. Safe
    to repeat, also concurrently: the newer result stays. Skipped while operators allow cached lists
    only. Raises MysqlDown, RedisDown."""
    if switch_refresh.read().cached_lists_only:
        record("refresh_skipped", {"refreshes_skipped": 1})
        return 0
    at_us = clock.now_us()
    stored, versions = rankings.read_ranked_posts()
    most_liked = mysql_rankings.read_most_liked(MAX_RANKED)
    others = stored - {post.post_id for post in most_liked}
    rechecked = mysql_rankings.read_likes(sorted(others))
    # MySQL was read after Redis, so what Redis has of a later version was never stored.
    known = {post.post_id: post.version for post in (*most_liked, *rechecked)}
    ahead = {post_id for post_id in known if versions.get(post_id, 0) > known[post_id]}
    rankings.forget_posts(wrong := ahead | others - known.keys())
    rankings.project_likes(rechecked)
    rankings.mark_ranking_complete(most_liked, at_us)
    for window in WINDOWS:
        ranked = mysql_rankings.read_window(hours_of(window, at_us), MAX_RANKED)
        rankings.swap_ranking(window, ranked, at_us)
    record(
        "rankings_refreshed",
        ranked=len(most_liked),
        rechecked=len(rechecked),
        forgotten=len(wrong),
    )
    return len(most_liked)


def warm_rankings(_: float) -> None:
    """Update all rankings, as ``refresh_rankings``."""
    refresh_rankings()


def hours_of(window: Window, at_us: int) -> RankedHours:
    """Return the hours whose likes the ranking of ``window`` counts at ``at_us``."""
    last = at_us // _HOUR_US
    if window != "hot":
        return RankedHours(last - WINDOW_HOURS[window] + 1, last)
    half_life_h = ranking_settings().hot_half_life_h
    count = min(HOT_HALF_LIVES * half_life_h, MAX_HOT_HOURS)
    return RankedHours(last - count + 1, last, half_life_h)


def list_most_liked(
    window: Window, after: PostRank | None, limit: int, actor_id: int | None
) -> RankingPage:
    """Return a page of the most liked posts; of equally liked posts the newer is first. A ranking
    ends after 1,000 posts. While operators allow cached lists only, it is the ranking as last
    built, without posts whose texts are not cached. Raises MysqlDown, RedisDown, SwitchedOff."""
    cached_only = current_switches().cached_lists_only
    listed: list[RankedPost] = []
    # Deleted posts leave gaps, which the following posts fill.
    for _ in range(_MAX_ROUNDS):
        missing = limit - len(listed)
        ranked = _read(window, after, missing + 1)
        more, ranked = len(ranked) > missing, ranked[:missing]
        post_ids = [r.post_id for r in ranked]
        posts = queries.read_posts(post_ids, actor_id, cached_only=cached_only)
        listed += [RankedPost(posts[r.post_id], r.likes) for r in ranked if r.post_id in posts]
        after = ranked[-1] if ranked else after
        if not more or len(listed) == limit:
            break
    fitting = count_fitting([post.post.text for post in listed])
    if fitting < len(listed):
        last = listed[fitting - 1]
        return RankingPage(listed[:fitting], PostRank(last.likes, last.post.text.id))
    return RankingPage(listed, after if more else None)


def _load_page(keys: Sequence[_PageKey], source: RunAll) -> dict[_PageKey, list[PostRank]]:
    """Read one page; a ranking that is not complete has none."""
    [key] = keys
    ranked = rankings.read_ranking(*key, source)
    return {} if ranked is None else {key: ranked}


def _read(window: Window, after: PostRank | None, limit: int) -> list[PostRank]:
    """Read from Redis, or from MySQL while Redis is unavailable or has no complete ranking."""
    try:
        pages = _hot_pages.read_all([(window, after, limit)], _load_page)
        if pages:
            return pages[window, after, limit]
        failure = RedisDown("The ranking is not built yet.")
    except RedisDown as error:
        failure = error
    if current_switches().cached_lists_only:
        raise SwitchedOff("Rankings are served from the cache only, which has none.") from failure
    if not _fallback_budget.take():
        raise failure
    if window == "all":
        return mysql_rankings.read_ranking(after, limit, MAX_RANKING_LISTED)
    hours = hours_of(window, clock.now_us())
    return mysql_rankings.read_window_ranking(hours, after, limit, MAX_RANKING_LISTED)

"""Reading the feed: from the inbox and from stars, and below their floors from MySQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from plaza import content
from plaza.content import ContentView, ListPosition
from plaza.content import queries as content_queries
from plaza.feed import mysql_store, redis_store
from plaza.feed.model import (
    INBOX,
    MAX_FLOOR_US,
    MIN_FLOOR_US,
    POSTS,
    FeedEntry,
    FeedPage,
    Timeline,
    group_by_author,
    merge,
)
from plaza.feed.rebuild import request_rebuild
from plaza.infra.mysql import MysqlDown
from plaza.infra.observability import error_fields, record
from plaza.infra.queues import QueueDown
from plaza.infra.redis import RedisDown
from plaza.infra.token_bucket import TokenBucket
from plaza.reactions import FOLLOW, Target
from plaza.reactions import queries as reactions_reading
from plaza.reactions.queues import FOLLOWS
from plaza.targets import lookup

_ROUNDS_IN_REDIS = 2
_MAX_ROUNDS = 4
# What one process may ask MySQL for in Redis' place: a thousand processes must not take it along.
_fallback_budget = TokenBucket(rate_per_s=20, burst=40)


class _Batch(NamedTuple):
    """The next entries past a place, none left out; the first ``hot`` of them are from Redis.

    ``ended``: there is nothing after them. ``verified``: MySQL just said that their authors are
    followed, and Redis is not there to know better.
    """

    entries: list[FeedEntry]
    ended: bool
    hot: int = 0
    verified: bool = False


def read_feed(user_id: int, after: ListPosition | None, limit: int) -> FeedPage:
    """What those whom a user follows posted, newest first, past ``after``.

    A page is full while there is more, except while MySQL is away. What is deleted or not followed
    any more is passed over, which takes four rounds at most. Raises MysqlDown, RedisDown.
    """
    shown: list[ContentView] = []
    place, ended = after, False
    for turn in range(_MAX_ROUNDS):
        try:
            batch = _read_batch(user_id, place, limit + 1, turn < _ROUNDS_IN_REDIS)
            shown += _read_visible(user_id, batch)
        except MysqlDown:
            if not shown:
                raise
            break
        ended = batch.ended
        place = batch.entries[-1].position if batch.entries else place
        if ended or len(shown) > limit:
            break
    page = shown[: content.count_fitting([whole.text for whole in shown[:limit]])]
    if len(page) < len(shown):
        place = ListPosition(page[-1].text.created_us, page[-1].text.id)
    elif ended:
        place = None
    return FeedPage(page, place)


def _read_batch(user_id: int, after: ListPosition | None, count: int, in_redis: bool) -> _Batch:
    try:
        floor_us, hot = _read_hot(user_id, after, count) if in_redis else (MAX_FLOOR_US, [])
        redis_away = False
    except RedisDown:
        if not _fallback_budget.take():
            raise
        floor_us, hot, redis_away = MAX_FLOOR_US, [], True
    if len(hot) == count:
        return _Batch(hot, ended=False, hot=count)
    if floor_us <= MIN_FLOOR_US:
        return _Batch(hot, ended=True, hot=len(hot))
    try:
        authors = [followee.user_id for followee in mysql_store.read_followees(user_id)]
        cold = mysql_store.read_page(authors, after, floor_us, count - len(hot))
    except MysqlDown:
        if not hot:
            raise
        return _Batch(hot, ended=False, hot=len(hot))
    record("feed_read_from_mysql", {"feeds_from_mysql": 1}, found=len(cold), hot=len(hot))
    entries = hot + cold
    return _Batch(entries, len(entries) < count, len(hot), redis_away)


def _read_hot(user_id: int, after: ListPosition | None, count: int) -> tuple[int, list[FeedEntry]]:
    """(floor_us, the newest ``count`` entries above it) of the inbox and the stars in it.

    Two round trips at most. Raises RedisDown.
    """
    inbox = Timeline(INBOX, user_id)
    looked = dict(zip([inbox], redis_store.read_pages([inbox], after, count), strict=True))
    if stars := [Timeline(POSTS, star) for star in looked[inbox].stars]:
        looked |= zip(stars, redis_store.read_pages(stars, after, count), strict=True)
    if asked := [timeline for timeline, said in looked.items() if said.rebuild_due]:
        request_rebuild(asked)
    floor_us = max(said.floor_us for said in looked.values())
    return floor_us, merge((said.newest for said in looked.values()), floor_us, after, count)


def _read_visible(user_id: int, batch: _Batch) -> list[ContentView]:
    """The posts of a batch that are still there, of who is still followed."""
    if not batch.entries:
        return []
    followed = set(group_by_author(batch.entries))
    if not batch.verified:
        mine = reactions_reading.read_viewer_states(
            [(FOLLOW, Target("user", a)) for a in sorted(followed)], user_id
        )
        # Whom nobody can tell about now, the inbox is right about but for some seconds.
        left = {a for a, is_mine in zip(sorted(followed), mine, strict=True) if is_mine is False}
        followed -= left
        _request_removal(user_id, left & set(group_by_author(batch.entries[: batch.hot])))
    posts = content_queries.read_posts(
        [e.id for e in batch.entries if e.author_id in followed], user_id
    )
    if missing := [
        e for e in batch.entries[: batch.hot] if e.author_id in followed and e.id not in posts
    ]:
        _drop_deleted(user_id, missing)
    return [posts[entry.id] for entry in batch.entries if entry.id in posts]


def _request_removal(user_id: int, author_ids: Iterable[int]) -> None:
    """Have authors removed who are in the inbox and not followed: a push may have come late."""
    if pairs := [(user_id, author_id) for author_id in sorted(author_ids)]:
        try:
            FOLLOWS.send(pairs)
        except QueueDown as error:
            record("removal_not_queued", **error_fields(error))


def _drop_deleted(user_id: int, missing: Sequence[FeedEntry]) -> None:
    """Take out of the timelines what MySQL, too, says is not there. It is not shown either way."""
    with suppress(MysqlDown, RedisDown):
        live = lookup.find_live({("post", entry.id) for entry in missing})
        if deleted := [entry for entry in missing if ("post", entry.id) not in live]:
            lists = [Timeline(POSTS, author_id) for author_id in group_by_author(deleted)]
            redis_store.remove_entries([Timeline(INBOX, user_id), *lists], deleted)

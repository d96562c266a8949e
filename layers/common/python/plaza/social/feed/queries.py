"""Read the feed: from the inbox and the posts of celebrities, and below their floors from MySQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from plaza.core.reactions import FOLLOW, Target
from plaza.core.reactions import queries as reaction_queries
from plaza.core.reactions.queues import FOLLOWS
from plaza.core.targets import lookup
from plaza.infra.http.callers import Charge, no_charge
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime.errors import TooManyRequests
from plaza.infra.runtime.observability import record
from plaza.social.content import queries as content_queries
from plaza.social.content.model import ContentView, ListCursor, count_fitting
from plaza.social.feed import redis_store
from plaza.social.feed.model import (
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
from plaza.social.feed.older_posts import OlderPosts
from plaza.social.feed.rebuild import request_rebuild

_ROUNDS_IN_REDIS = 2
_MAX_ROUNDS = 4
# Pages that one process reads from MySQL while Redis is unavailable.
_fallback_budget = TokenBucket(rate_per_s=20, burst=40)


class _Batch(NamedTuple):
    """The next entries past a cursor, without gaps; the first ``hot`` of them are from Redis.

    ``last``: past which the next ones follow; None at the end. ``verified``: MySQL just confirmed
    that their authors are followed, and Redis, which may have newer follows, is unavailable.
    """

    entries: list[FeedEntry]
    last: ListCursor | None
    hot: int = 0
    verified: bool = False


def read_feed(
    user_id: int, after: ListCursor | None, limit: int, charge: Charge = no_charge
) -> FeedPage:
    """Return a page of the posts of a user's followed authors, newest first, past ``after``.

    Deleted posts and posts of authors no longer followed are skipped; at most four rounds fill the
    page. It may be short after four rounds, while MySQL is unavailable, and where old posts are
    read: where ``charge`` refuses the next statement, or one page does not look up all followees.
    Raises MysqlDown, RedisDown, TooManyRequests.
    """
    visible: list[ContentView] = []
    cursor, older = after, OlderPosts(user_id, charge)
    for attempt in range(_MAX_ROUNDS):
        try:
            if not (in_redis := attempt < _ROUNDS_IN_REDIS):
                older.forget_deleted()
            batch = _read_batch(user_id, cursor, limit + 1, in_redis, older)
            visible += _read_visible(user_id, batch)
        except (MysqlDown, TooManyRequests):
            if not visible:
                raise
            break
        cursor = batch.last
        if len(batch.entries) <= limit or len(visible) > limit:
            break
    page = visible[: count_fitting([view.text for view in visible[:limit]])]
    if len(page) < len(visible):
        cursor = ListCursor(page[-1].text.created_us, page[-1].text.id)
    return FeedPage(page, cursor)


def _read_batch(
    user_id: int, after: ListCursor | None, count: int, in_redis: bool, older: OlderPosts
) -> _Batch:
    """Return the next ``count`` entries; fewer at the end, and where the page must end."""
    try:
        floor_us, hot = _read_hot(user_id, after, count) if in_redis else (MAX_FLOOR_US, [])
        if len(hot) == count:
            return _Batch(hot, hot[-1].cursor, hot=count)
        if floor_us <= MIN_FLOOR_US:
            return _Batch(hot, None, hot=len(hot))
        return _read_below(hot, after, floor_us, count, older)
    except RedisDown:
        if not _fallback_budget.take():
            raise
    older.forget_redis()
    return _read_below([], after, MAX_FLOOR_US, count, older)._replace(verified=True)


def _read_below(
    hot: list[FeedEntry],
    after: ListCursor | None,
    floor_us: int,
    count: int,
    older: OlderPosts,
) -> _Batch:
    """Return the entries above the floor, and those at or below it."""
    try:
        page = older.read_page(after, floor_us, count - len(hot))
    except (MysqlDown, TooManyRequests):
        if not hot:
            raise
        return _Batch(hot, hot[-1].cursor, hot=len(hot))
    record("feed_read_from_mysql", {"feeds_from_mysql": 1}, found=len(page.entries), hot=len(hot))
    return _Batch(hot + page.entries, None if page.is_ended else page.last, hot=len(hot))


def _read_hot(user_id: int, after: ListCursor | None, count: int) -> tuple[int, list[FeedEntry]]:
    """Return the highest floor of the inbox and its celebrities, and ``count`` entries above it. At
    most two round trips. Raises RedisDown."""
    inbox = Timeline(INBOX, user_id)
    pages = dict(zip([inbox], redis_store.read_pages([inbox], after, count), strict=True))
    if celebrities := [Timeline(POSTS, celebrity) for celebrity in pages[inbox].celebrities]:
        pages |= zip(celebrities, redis_store.read_pages(celebrities, after, count), strict=True)
    if due := [timeline for timeline, page in pages.items() if page.rebuild_due]:
        request_rebuild(due)
    floor_us = max(page.floor_us for page in pages.values())
    return floor_us, merge((page.newest for page in pages.values()), floor_us, after, count)


def _read_visible(user_id: int, batch: _Batch) -> list[ContentView]:
    """Return the live posts of a batch whose authors are still followed."""
    if not batch.entries:
        return []
    followed = set(group_by_author(batch.entries))
    if not batch.verified:
        states = reaction_queries.read_viewer_states(
            [(FOLLOW, Target("user", a)) for a in sorted(followed)], user_id
        )
        # Unknown states (None) count as followed: the inbox is at most seconds behind.
        left = {a for a, state in zip(sorted(followed), states, strict=True) if state is False}
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
    """Queue the removal of authors from the inbox: a late push may have added them again."""
    if pairs := [(user_id, author_id) for author_id in sorted(author_ids)]:
        FOLLOWS.try_send(pairs)


def _drop_deleted(user_id: int, missing: Sequence[FeedEntry]) -> None:
    """Remove the entries from the timelines whose posts MySQL does not have either."""
    with suppress(MysqlDown, RedisDown):  # they are not shown in any case
        live = lookup.find_live({("post", entry.id) for entry in missing})
        if deleted := [entry for entry in missing if ("post", entry.id) not in live]:
            lists = [Timeline(POSTS, author_id) for author_id in group_by_author(deleted)]
            redis_store.remove_entries([Timeline(INBOX, user_id), *lists], deleted)

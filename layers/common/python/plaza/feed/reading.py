"""Reading the feed: from the inbox and from stars, and below their floors from MySQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from plaza import content
from plaza.content import Place, Whole
from plaza.content import reading as content_reading
from plaza.feed import mysql_feed, redis_feed
from plaza.feed.feed import (
    BEGINNING_US,
    INBOX,
    NOWHERE_US,
    POSTS,
    Entry,
    Feed,
    Timeline,
    by_author,
    merge,
)
from plaza.feed.rebuilding import ask_rebuild
from plaza.infra.mysql import MysqlDown
from plaza.infra.observability import cause, record
from plaza.infra.queues import QueueDown
from plaza.infra.redis import RedisDown
from plaza.infra.token_bucket import TokenBucket
from plaza.reactions import FOLLOW, Target
from plaza.reactions import reading as reactions_reading
from plaza.reactions.queues import FOLLOWS
from plaza.targets import finding

_ROUNDS_IN_REDIS = 2
_MOST_ROUNDS = 4
# What one process may ask MySQL for in Redis' place: a thousand processes must not take it along.
_instead_of_redis = TokenBucket(rate_per_s=20, burst=40)


class _Batch(NamedTuple):
    """The next entries past a place, none left out; the first ``hot`` of them are from Redis.

    ``ended``: there is nothing after them. ``sure``: MySQL just said that their authors are
    followed, and Redis is not there to know better.
    """

    entries: list[Entry]
    ended: bool
    hot: int = 0
    sure: bool = False


def read_feed(user_id: int, after: Place | None, limit: int) -> Feed:
    """What those whom a user follows posted, newest first, past ``after``.

    A page is full while there is more, except while MySQL is away. What is deleted or not followed
    any more is passed over, which takes four rounds at most. Raises MysqlDown, RedisDown.
    """
    shown: list[Whole] = []
    place, ended = after, False
    for turn in range(_MOST_ROUNDS):
        try:
            batch = _read_batch(user_id, place, limit + 1, turn < _ROUNDS_IN_REDIS)
            shown += _read_visible(user_id, batch)
        except MysqlDown:
            if not shown:
                raise
            break
        ended = batch.ended
        place = batch.entries[-1].place if batch.entries else place
        if ended or len(shown) > limit:
            break
    page = shown[: content.count_fitting([whole.text for whole in shown[:limit]])]
    if len(page) < len(shown):
        place = Place(page[-1].text.created_us, page[-1].text.id)
    elif ended:
        place = None
    return Feed(page, place)


def _read_batch(user_id: int, after: Place | None, count: int, in_redis: bool) -> _Batch:
    try:
        floor_us, hot = _read_hot(user_id, after, count) if in_redis else (NOWHERE_US, [])
        redis_away = False
    except RedisDown:
        if not _instead_of_redis.take():
            raise
        floor_us, hot, redis_away = NOWHERE_US, [], True
    if len(hot) == count:
        return _Batch(hot, ended=False, hot=count)
    if floor_us <= BEGINNING_US:
        return _Batch(hot, ended=True, hot=len(hot))
    try:
        authors = [followee.user_id for followee in mysql_feed.read_followees(user_id)]
        cold = mysql_feed.read_page(authors, after, floor_us, count - len(hot))
    except MysqlDown:
        if not hot:
            raise
        return _Batch(hot, ended=False, hot=len(hot))
    record("feed_read_in_mysql", {"feeds_from_mysql": 1}, found=len(cold), hot=len(hot))
    entries = hot + cold
    return _Batch(entries, len(entries) < count, len(hot), redis_away)


def _read_hot(user_id: int, after: Place | None, count: int) -> tuple[int, list[Entry]]:
    """(floor_us, the newest ``count`` entries above it) of the inbox and the stars in it.

    Two round trips at most. Raises RedisDown.
    """
    inbox = Timeline(INBOX, user_id)
    looked = dict(zip([inbox], redis_feed.look_all([inbox], after, count), strict=True))
    if stars := [Timeline(POSTS, star) for star in looked[inbox].stars]:
        looked |= zip(stars, redis_feed.look_all(stars, after, count), strict=True)
    if asked := [timeline for timeline, said in looked.items() if said.ask]:
        ask_rebuild(asked)
    floor_us = max(said.floor_us for said in looked.values())
    return floor_us, merge((said.newest for said in looked.values()), floor_us, after, count)


def _read_visible(user_id: int, batch: _Batch) -> list[Whole]:
    """The posts of a batch that are still there, of who is still followed."""
    if not batch.entries:
        return []
    followed = set(by_author(batch.entries))
    if not batch.sure:
        mine = reactions_reading.read_mine(
            [(FOLLOW, Target("user", a)) for a in sorted(followed)], user_id
        )
        # Whom nobody can tell about now, the inbox is right about but for some seconds.
        left = {a for a, is_mine in zip(sorted(followed), mine, strict=True) if is_mine is False}
        followed -= left
        _ask_removal(user_id, left & set(by_author(batch.entries[: batch.hot])))
    posts = content_reading.read_posts(
        [e.id for e in batch.entries if e.author_id in followed], user_id
    )
    if missing := [
        e for e in batch.entries[: batch.hot] if e.author_id in followed and e.id not in posts
    ]:
        _drop_deleted(user_id, missing)
    return [posts[entry.id] for entry in batch.entries if entry.id in posts]


def _ask_removal(user_id: int, author_ids: Iterable[int]) -> None:
    """Have authors removed who are in the inbox and not followed: a push may have come late."""
    if pairs := [(user_id, author_id) for author_id in sorted(author_ids)]:
        try:
            FOLLOWS.send(pairs)
        except QueueDown as error:
            record("removal_postponed", **cause(error))


def _drop_deleted(user_id: int, missing: Sequence[Entry]) -> None:
    """Take out of the timelines what MySQL, too, says is not there. It is not shown either way."""
    with suppress(MysqlDown, RedisDown):
        live = finding.find_live({("post", entry.id) for entry in missing})
        if deleted := [entry for entry in missing if ("post", entry.id) not in live]:
            lists = [Timeline(POSTS, author_id) for author_id in by_author(deleted)]
            redis_feed.drop([Timeline(INBOX, user_id), *lists], deleted)

"""Feeds: full inboxes of readers with as many celebrities as allowed, and full calls."""

import time
from collections.abc import Callable

from bench.harness import Harness
from bench.scripts.cases import Case, prepare_nothing
from plaza.infra.redis import redis
from plaza.infra.redis.shards import shard_of
from plaza.people import follows
from plaza.social.content.model import ListCursor
from plaza.social.feed import redis_store
from plaza.social.feed.apply_follows import BACKFILL
from plaza.social.feed.model import INBOX, MIN_FLOOR_US, FeedEntry, Timeline
from plaza.social.feed.redis_store import MAX_CELEBRITIES_PER_CALL, MAX_TIMELINES_PER_CALL, Push

FULL = 1_250  # posts in an inbox before it is cut
PAGE = 101  # a page of 100, and one more to detect another page
_FIRST = 10**18
_BEGAN_US = 1_700_000_000_000_000
_READERS = 10  # one for each run of a case


def _inbox(run: int) -> Timeline:
    return Timeline(INBOX, _FIRST + run)


def _entries(first: int, count: int, apart_us: int = 1) -> list[FeedEntry]:
    return [
        FeedEntry(_BEGAN_US + (first + i) * apart_us, _FIRST + first + i, _FIRST + i)
        for i in range(count)
    ]


def _put(timeline: Timeline, entries: list[FeedEntry], celebrities: int) -> None:
    """Write a timeline as a build leaves it."""
    push = Push(timeline, entries, range(_FIRST, _FIRST + celebrities))
    members = redis_store._members(push)
    now_us = time.time_ns() // 1000
    key = redis_store.key(timeline)
    redis.execute("ZADD", key, -MIN_FLOOR_US, "floor", -now_us, "built")
    for start in range(0, len(members), 10_000):
        redis.execute("ZADD", key, *members[start : start + 10_000])


def _fill(apart_us: int) -> Callable[[Harness], None]:
    def fill(harness: Harness) -> None:
        for run in range(_READERS):
            _put(_inbox(run), _entries(0, FULL, apart_us), follows.FOLLOW_LIMIT)

    return fill


def _begin_all(harness: Harness) -> None:
    """Write inboxes with an unfinished build, full of entries that were pushed meanwhile."""
    for run in range(_READERS):
        _put(_inbox(run), _entries(0, FULL), follows.FOLLOW_LIMIT)
        redis.execute("ZADD", redis_store.key(_inbox(run)), -7, "building")


def _of_one_shard() -> list[int]:
    """Return the readers of one run of push, for each run of the case."""
    user_ids: list[int] = []
    shard, user_id = shard_of(f"user:{_FIRST}"), _FIRST
    while len(user_ids) < _READERS * MAX_TIMELINES_PER_CALL:
        if shard_of(f"user:{user_id}") == shard:
            user_ids.append(user_id)
        user_id += 1
    return user_ids


_readers: list[int] = []


def _fill_one_shard(harness: Harness) -> None:
    _readers[:] = _of_one_shard()
    for user_id in _readers:
        _put(Timeline(INBOX, user_id), _entries(0, FULL), 1)


def _push_to_inboxes(run: int) -> None:
    first = run * MAX_TIMELINES_PER_CALL
    redis_store.push_to_inboxes(
        _readers[first : first + MAX_TIMELINES_PER_CALL], _entries(FULL, 1)[0], celebrity=True
    )


def _backfill(run: int) -> None:
    """Backfill above all entries, so that they are below the new floor."""
    entries = _entries(2 * FULL, BACKFILL)
    redis_store.push_all([Push(_inbox(run), entries, floor_us=entries[0].created_us)])


def _push_celebrities(run: int) -> None:
    celebrities = range(2 * _FIRST, 2 * _FIRST + MAX_CELEBRITIES_PER_CALL)
    redis_store.push_all([Push(_inbox(run), [], celebrities)])


def _fill_built(run: int) -> None:
    cap = _inbox(run).cap
    redis_store.fill_all([(7, Push(_inbox(run), _entries(FULL, cap)))])


CASES = [
    Case(
        "5,000 celebrities",
        redis_store.READ_PAGE,
        _fill(1),
        lambda run: redis_store.read_pages([_inbox(run)], None, PAGE),
    ),
    Case(
        "5,000 celebrities, all posts of one microsecond",
        redis_store.READ_PAGE,
        _fill(0),
        lambda run: redis_store.read_pages(
            [_inbox(run)], ListCursor(_BEGAN_US, _FIRST + FULL), PAGE
        ),
    ),
    Case("20 inboxes that are cut", redis_store.PUSH, _fill_one_shard, _push_to_inboxes),
    Case("100 posts above all others", redis_store.PUSH, _fill(1), _backfill),
    Case("500 celebrities", redis_store.PUSH, _fill(1), _push_celebrities),
    Case(
        "a timeline",
        redis_store.BEGIN,
        prepare_nothing,
        lambda run: redis_store.begin_all([_inbox(run)]),
    ),
    Case("1,000 posts into a full inbox", redis_store.FILL, _begin_all, _fill_built),
    Case(
        "a full inbox",
        redis_store.REMOVE,
        _fill(1),
        lambda run: redis_store.remove_authors([(_inbox(run), _FIRST + run)]),
    ),
]

"""Timelines in Redis and what MySQL has of them, for the reconciliation.

What changed within the last quarter of an hour is left out: it may be on its way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from plaza.infra.derived.comparisons import DerivedList, is_in_quota
from plaza.infra.derived.list_state import ListState, compare_entries
from plaza.infra.runtime import clock
from plaza.infra.runtime.codec import MAX_ID
from plaza.social.feed import mysql_store, redis_store
from plaza.social.feed.model import INBOX, POSTS, FeedEntry, Timeline

IN_TRANSIT_US = 900_000_000
INBOXES_PER_STATEMENT = 20  # each reads the posts of up to 5,000 authors
_KEY = re.compile(r"\{\d+\}:user:([1-9]\d{0,18}):(inbox|posts)", re.ASCII)


def owner_of(key: str) -> Timeline | None:
    """Return the timeline that ``key`` has, None for any other key. No round trip."""
    match = _KEY.fullmatch(key)
    if match is None or int(match[1]) > MAX_ID:
        return None
    timeline = Timeline(INBOX if match[2] == INBOX else POSTS, int(match[1]))
    return timeline if redis_store.key(timeline) == key else None


def compare_inboxes(user_ids: Sequence[int]) -> dict[int, ListState]:
    """Compare inboxes with the posts and celebrities of followed users; omit users whose inbox is
    not built. One round trip, and a statement for each 20 inboxes. Raises RedisDown, MysqlDown."""
    until_us = clock.now_us() - IN_TRANSIT_US
    cached = redis_store.read_whole([Timeline(INBOX, user_id) for user_id in user_ids])
    built = sorted(timeline.user_id for timeline in cached)
    states: dict[int, ListState] = {}
    for start in range(0, len(built), INBOXES_PER_STATEMENT):
        part = built[start : start + INBOXES_PER_STATEMENT]
        floors = {user_id: cached[Timeline(INBOX, user_id)].floor_us for user_id in part}
        for user_id, expected in mysql_store.read_inboxes(floors, until_us).items():
            page = cached[Timeline(INBOX, user_id)]
            posts = [e for e in page.newest if e.author_id not in expected.left_out]
            # A celebrity may still have posts from before it became one; readers list them once.
            posts = [e for e in posts if e.author_id not in expected.celebrities]
            celebrities = {
                author_id for author_id in page.celebrities if author_id not in expected.left_out
            }
            states[user_id] = _compare(
                posts, page.floor_us, until_us, celebrities, expected.posts, expected.celebrities
            )
    return states


def compare_celebrity_posts(user_ids: Sequence[int]) -> dict[int, ListState]:
    """Compare the posts of celebrities with MySQL; omit those that are not built. One round trip,
    one statement. Raises RedisDown, MysqlDown."""
    until_us = clock.now_us() - IN_TRANSIT_US
    cached = redis_store.read_whole([Timeline(POSTS, user_id) for user_id in user_ids])
    floors = {timeline.user_id: page.floor_us for timeline, page in cached.items()}
    stored = mysql_store.read_posts_above(floors)
    return {
        timeline.user_id: _compare(
            page.newest, page.floor_us, until_us, (), stored[timeline.user_id], ()
        )
        for timeline, page in cached.items()
    }


def drop_inboxes(user_ids: Iterable[int]) -> None:
    """Drop inboxes. One round trip. Raises RedisDown."""
    redis_store.drop(Timeline(INBOX, user_id) for user_id in user_ids)


def drop_celebrity_posts(user_ids: Iterable[int]) -> None:
    """Drop the posts of celebrities. One round trip. Raises RedisDown."""
    redis_store.drop(Timeline(POSTS, user_id) for user_id in user_ids)


def _compare(
    cached: Iterable[FeedEntry],
    floor_us: int,
    until_us: int,
    cached_celebrities: Iterable[int],
    stored: Iterable[FeedEntry],
    stored_celebrities: Iterable[int],
) -> ListState:
    return compare_entries(
        _list_entries(cached, floor_us, until_us, cached_celebrities),
        _list_entries(stored, floor_us, until_us, stored_celebrities),
    )


def _list_entries(
    entries: Iterable[FeedEntry], floor_us: int, until_us: int, celebrities: Iterable[int]
) -> dict[str, int]:
    return {f"celebrity:{author_id}": 0 for author_id in celebrities} | {
        f"post:{e.id} of {e.author_id}": e.created_us
        for e in entries
        if floor_us < e.created_us <= until_us
    }


def _find_inbox(key: str) -> int | None:
    """Return the owner of an inbox that this night compares: one costs as much as a page of old
    posts."""
    inbox = owner_of(key)
    return inbox.user_id if inbox and inbox.kind == INBOX and is_in_quota(inbox.user_id) else None


def _find_celebrity(key: str) -> int | None:
    timeline = owner_of(key)
    return timeline.user_id if timeline and timeline.kind == POSTS else None


INBOXES = DerivedList(
    name="inbox", find_owner=_find_inbox, compare=compare_inboxes, repair=drop_inboxes
)
CELEBRITY_POSTS = DerivedList(
    name="celebrity-posts",
    find_owner=_find_celebrity,
    compare=compare_celebrity_posts,
    repair=drop_celebrity_posts,
)

"""Feeds in tests: inserts of posts and follows, scrolling, and the feed by MySQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from plaza.content import ContentView, ListPosition
from plaza.feed import queries
from plaza.infra import mysql

BASE_US = 1_790_000_000_000_000
_ROWS_PER_INSERT = 5_000


def insert_posts(posts: Iterable[tuple[int, int, int]]) -> None:
    """Insert posts without a fan-out: (post, author, created_us)."""
    for part in _split(
        f"('post',{post},{author},'1970-01-01' + INTERVAL {at_us} MICROSECOND,'note','t','b')"
        for post, author, at_us in posts
    ):
        mysql.write(
            "INSERT INTO content (content_type, content_id, author_id, created_at, kind, title,"
            f" body) VALUES {','.join(part)}"
        )


def insert_follows(pairs: Iterable[tuple[int, int]]) -> None:
    """Insert follows (reader, author) and their counters, without changing inboxes."""
    for part in _split(
        f"('user',{author},'follow',{reader},1,{BASE_US})" for reader, author in pairs
    ):
        mysql.write(
            "INSERT INTO reaction (target_type, target_id, kind, actor_id, state, version)"
            f" VALUES {','.join(part)}"
        )
    mysql.write(
        "INSERT INTO user_counter (user_id, followers_total, version)"
        " SELECT target_id, COUNT(*), 1 FROM reaction WHERE kind = 'follow' AND state = 1"
        " GROUP BY target_id ON DUPLICATE KEY UPDATE followers_total = VALUES(followers_total),"
        " version = user_counter.version + 1"
    )
    mysql.write(
        "INSERT INTO content_counter (target_type, target_id, follow_total, follow_version)"
        " SELECT target_type, target_id, COUNT(*), 1 FROM reaction"
        " WHERE kind = 'follow' AND state = 1 GROUP BY target_type, target_id"
        " ON DUPLICATE KEY UPDATE follow_total = VALUES(follow_total),"
        " follow_version = content_counter.follow_version + 1"
    )


def truth(user_id: int) -> list[int]:
    """Return the ids of the posts of a user's feed by MySQL, newest first."""
    return [
        post_id
        for (post_id,) in mysql.fetch_all(
            "SELECT c.content_id FROM content AS c JOIN reaction AS r ON r.target_type = 'user'"
            " AND r.target_id = c.author_id AND r.kind = 'follow' AND r.actor_id = %s"
            " AND r.state = 1 WHERE c.content_type = 'post' AND c.deleted_at IS NULL"
            " ORDER BY c.created_at DESC, c.content_id DESC",
            (user_id,),
        )
    ]


def scroll(
    user_id: int, size: int, between: Callable[[], object] | None = None
) -> list[ContentView]:
    """Return all pages of a feed; call ``between`` after each page."""
    views: list[ContentView] = []
    after: ListPosition | None = None
    for _ in range(5_000):
        page, after = queries.read_feed(user_id, after, size)
        assert len(page) == size or after is None, "a short page that is not the last"
        views += page
        if after is None:
            return views
        if between is not None:
            between()
    raise AssertionError("the feed does not end")


def ids(views: Sequence[ContentView]) -> list[int]:
    return [view.text.id for view in views]


def _split(rows: Iterable[str]) -> Iterable[list[str]]:
    rest = iter(rows)
    while part := list(islice(rest, _ROWS_PER_INSERT)):
        yield part

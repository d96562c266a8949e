"""Feeds in tests: posts and follows inserted into MySQL, scrolling, the expected feed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from plaza.infra.mysql import mysql
from plaza.social.content.model import ContentView, ListCursor
from plaza.social.feed import queries

BASE_US = 1_790_000_000_000_000
_AT_ONCE = 5_000


def insert_posts(posts: Iterable[tuple[int, int, int]]) -> None:
    """Insert (post, author, created_us) without pushing them."""
    for some in _parts(
        f"('post',{post},{author},'1970-01-01' + INTERVAL {at_us} MICROSECOND,'note','t','b')"
        for post, author, at_us in posts
    ):
        mysql.write(
            "INSERT INTO content (content_type, content_id, author_id, created_at, kind, title,"
            f" body) VALUES {','.join(some)}"
        )


def insert_follows(pairs: Iterable[tuple[int, int]]) -> None:
    """Insert (follower, followed user) with their counters, without updating inboxes."""
    for some in _parts(
        f"('user',{target},'follow',{actor},1,{BASE_US})" for actor, target in pairs
    ):
        mysql.write(
            "INSERT INTO reaction (target_type, target_id, kind, actor_id, state, version)"
            f" VALUES {','.join(some)}"
        )
    mysql.write(
        "INSERT INTO user_counter (user_id, followers_total, version)"
        " SELECT target_id, COUNT(*), 1 FROM reaction WHERE kind = 'follow' AND state = 1"
        " GROUP BY target_id ON DUPLICATE KEY UPDATE followers_total = VALUES(followers_total),"
        " version = user_counter.version + 1"
    )
    mysql.write(
        "INSERT INTO counter (target_type, target_id, kind, total, version)"
        " SELECT target_type, target_id, kind, COUNT(*), 1 FROM reaction"
        " WHERE kind = 'follow' AND state = 1 GROUP BY target_type, target_id"
        " ON DUPLICATE KEY UPDATE total = VALUES(total), version = counter.version + 1"
    )


def expected_feed(user_id: int) -> list[int]:
    """Return the ids of the posts of a user's feed in MySQL, newest first."""
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
    user_id: int,
    size: int,
    meanwhile: Callable[[], object] | None = None,
    *,
    short: bool = False,
) -> list[ContentView]:
    """Read a feed to its end, ``size`` posts a page; call ``meanwhile`` after each page. ``short``:
    pages may be shorter, for a reader of more authors than a page looks up."""
    views: list[ContentView] = []
    after: ListCursor | None = None
    for _ in range(5_000):
        page, after = queries.read_feed(user_id, after, size)
        assert short or len(page) == size or after is None, "a page before the last is short"
        views += page
        if after is None:
            return views
        if meanwhile is not None:
            meanwhile()
    raise AssertionError("the feed does not end")


def ids(views: Sequence[ContentView]) -> list[int]:
    """Return the ids of posts."""
    return [view.text.id for view in views]


def _parts(rows: Iterable[str]) -> Iterable[list[str]]:
    todo = iter(rows)
    while some := list(islice(todo, _AT_ONCE)):
        yield some

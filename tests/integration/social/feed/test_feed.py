"""GET /feed: items, costs, unavailable stores, invalid requests."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from plaza.core import reactions
from plaza.core.reactions import COLLECT, FOLLOW, LIKE, Target, react
from plaza.infra.http.cursors import pack_cursor
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime.process import clear_caches
from plaza.social.content import commands
from plaza.social.content import queries as content_queries
from plaza.social.content.model import ListCursor
from plaza.social.feed import queries, redis_store
from plaza.social.feed.model import INBOX, POSTS, Timeline
from tests.integration.conftest import Away
from tests.support.content_api import as_another_process, counting_work
from tests.support.content_api import ask as ask_any
from tests.support.feeds import BASE_US, expected_feed, ids, insert_follows, insert_posts, scroll
from tests.support.plaza import World, forget
from tests.support.stores import ORDER_TOKEN, add_users, reactions_of

SetUp = Callable[..., None]
ME = 7
OTHERS = range(11, 31)

ask = partial(ask_any, "GET", folder="api/feed", user=ME)


@pytest.fixture
def world(plaza: World) -> World:
    """ME follows 20 authors with 100 posts, and has an inbox."""
    add_users(ME, *OTHERS)
    insert_follows([(ME, other) for other in OTHERS])
    insert_posts([(n, OTHERS[n % 20], BASE_US + n // 3) for n in range(1, 101)])
    queries.read_feed(ME, None, 1)
    plaza.queues.drain()
    return plaza


@pytest.fixture
def many_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the fallback budgets above the needs of a test."""
    for module in (queries, reactions.queries):
        monkeypatch.setattr(module, "_fallback_budget", TokenBucket(1000, 1000))


# ---------------------------------------------------------------- responses


def test_an_item_has_all_fields_of_a_preview(world: World) -> None:
    post = Target("post", 100)
    react.react(LIKE, post, ME, True)
    react.react(LIKE, post, 8, True)
    react.react(COLLECT, post, 8, True)
    reply = ask("/feed?limit=1")
    assert reply.status == 200
    [item] = reply.body["items"]
    assert item == {
        "id": "100",
        "kind": "note",
        "title": "t",
        "body_preview": "b",
        "truncated": False,
        "images": [],
        "created_at": item["created_at"],
        "edited_at": None,
        "hidden": False,
        "author": {"id": "11", "nickname": item["author"]["nickname"], "avatar": None},
        "likes": 2,
        "likes_at": ORDER_TOKEN,
        "collects": 1,
        "collects_at": ORDER_TOKEN,
        "comments": 0,
        "viewers": 0,
        "mine": {"liked": True, "collected": False},
        "reactions": reactions_of("post", like=(2, True), collect=(1, False)),
        "exact": True,
    }


def test_cursors_lead_to_the_end_of_the_feed(world: World) -> None:
    items, path = [], "/feed?limit=7"
    while path:
        page = ask(path).body
        items += [int(item["id"]) for item in page["items"]]
        path = f"/feed?limit=7&cursor={page['next']}" if page["next"] else ""
    assert items == list(range(100, 0, -1))


def test_a_user_without_follows_has_an_empty_feed(world: World) -> None:
    for _ in range(2):
        reply = ask("/feed", user=99)
        assert (reply.status, reply.body) == (200, {"items": [], "next": None})
        world.queues.drain()


def test_the_feed_requires_a_session(world: World) -> None:
    reply = ask("/feed", user=None)
    assert (reply.status, reply.slug) == (401, "unauthenticated")


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=101",
        "limit=-1",
        "limit=x",
        "limit=1e1",
        "cursor=",
        "cursor=%00",
        "cursor=abc",
        "cursor=" + "A" * 201,
        *(
            "cursor=" + pack_cursor(*parts)
            for parts in [
                (1,),
                (1, 2, 3),
                ("1", 2),
                (-1, 2),
                (1, -2),
                (1, 0),
                (2**62, 1),
                (253_402_300_800_000_001, 1),
            ]
        ),
        "cursor=" + pack_cursor(2**63 - 1, 2**63 - 1),
    ],
)
def test_an_invalid_query_is_a_400(world: World, query: str) -> None:
    reply = ask(f"/feed?{query}")
    assert (reply.status, reply.slug) == (400, "invalid-request"), reply.body


@pytest.mark.parametrize(
    ("cursor", "result"),
    [((0, 1), 0), ((1, 2**63 - 1), 0), ((BASE_US + 1, 4), 3), ((253_402_214_400_000_000, 1), 100)],
)
def test_a_cursor_between_posts_is_accepted(
    world: World, cursor: tuple[int, int], result: int
) -> None:
    for flush in (False, True):
        if flush:
            redis.execute("FLUSHALL")
        page = ask(f"/feed?limit=100&cursor={pack_cursor(*cursor)}").body
        assert len(page["items"]) == result


# ---------------------------------------------------------------- deletions, unfollows, cost


def test_a_deleted_post_is_hidden_at_once_and_removed_from_the_inbox_by_a_read(
    world: World,
) -> None:
    commands.delete(Target("post", 99), OTHERS[99 % 20])
    assert ids(queries.read_feed(ME, None, 3).items) == [100, 98, 97]
    members = redis.execute("ZRANGE", redis_store.key(Timeline(INBOX, ME)), 0, -1)
    assert not [m for m in members if m.startswith(f"{99:019d}")]
    assert [m for m in members if m.startswith(f"{100:019d}")]


def test_a_post_that_content_cannot_read_stays_in_the_inbox(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_queries, "read_posts", lambda post_ids, actor_id: {})
    queries.read_feed(ME, None, 3)
    members = redis.execute("ZRANGE", redis_store.key(Timeline(INBOX, ME)), 0, -1)
    assert sum(":" in member for member in members) == 100


def test_an_unfollowed_author_is_hidden_at_once(world: World) -> None:
    author = OTHERS[100 % 20]
    react.react(FOLLOW, Target("user", author), ME, False)
    assert all(view.text.author_id != author for view in scroll(ME, 7))
    assert len(scroll(ME, 7)) == 95
    world.queues.drain()
    assert ids(scroll(ME, 7)) == expected_feed(ME)


def test_a_page_is_full_after_most_of_the_inbox_was_deleted(world: World) -> None:
    mysql.write("UPDATE content SET deleted_at = NOW(6) WHERE content_id BETWEEN 20 AND 95")
    with counting_work() as work:
        page = queries.read_feed(ME, None, 10)
    assert ids(page.items) == [100, 99, 98, 97, 96, 19, 18, 17, 16, 15]
    assert work.round_trips < 60
    assert work.statements < 30
    assert ids(scroll(ME, 10)) == expected_feed(ME)


@pytest.mark.parametrize("limit", [1, 7, 20, 99])
def test_a_cached_page_takes_no_statement_and_five_round_trips(world: World, limit: int) -> None:
    queries.read_feed(ME, None, limit)
    as_another_process()
    with counting_work() as work:
        assert len(queries.read_feed(ME, None, limit).items) == limit
    assert (work.statements, work.round_trips) == (0, 5)


@pytest.mark.parametrize("limit", [1, 7, 20, 99])
def test_a_page_below_the_floor_takes_at_most_seven_statements(
    world: World, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis.execute("DEL", redis_store.key(Timeline(INBOX, ME)))
    monkeypatch.setattr(Timeline, "cap", 10)
    queries.read_feed(ME, None, 100)
    world.queues.drain()
    cursor = ListCursor(BASE_US + 33, 99)
    queries.read_feed(ME, cursor, limit)
    with counting_work() as work:
        queries.read_feed(ME, cursor, limit)
    assert work.statements <= 7
    assert work.round_trips <= 9


# ---------------------------------------------------------------- unavailable stores


def test_without_redis_the_feed_is_read_from_mysql(
    world: World, redis_away: Away, many_tokens: None
) -> None:
    expected = expected_feed(ME)
    with redis_away():
        reply = ask("/feed?limit=5")
        assert [int(item["id"]) for item in reply.body["items"]] == expected[:5]
        assert reply.body["items"][0]["exact"] is False
        assert ids(scroll(ME, 40)) == expected


def test_without_redis_reads_of_mysql_are_limited(
    world: World, redis_away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "_fallback_budget", TokenBucket(0.001, 2))
    with redis_away():
        statuses = [ask("/feed?limit=1").status for _ in range(4)]
    assert statuses == [200, 200, 503, 503]


def test_an_emptied_redis_is_filled_again_without_gaps(world: World) -> None:
    redis.execute("FLUSHALL")
    clear_caches()  # texts cached in the process would not be written to Redis again
    assert ids(scroll(ME, 7)) == expected_feed(ME)
    world.queues.drain()
    with counting_work() as work:
        queries.read_feed(ME, None, 7)
    assert work.statements == 0


def test_without_mysql_a_cached_feed_is_read_from_redis(world: World, mysql_away: Away) -> None:
    expected = ids(scroll(ME, 20))
    with mysql_away():
        assert ids(scroll(ME, 20)) == expected
        assert ask("/feed").status == 200


def test_without_mysql_an_uncached_feed_is_a_503(world: World, mysql_away: Away) -> None:
    with mysql_away():
        reply = ask("/feed", user=99)
    assert (reply.status, reply.slug) == (503, "unavailable")
    assert int(reply.headers["retry-after"]) > 0


def test_without_mysql_a_page_ends_at_the_floor_and_has_a_next(
    world: World, mysql_away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis.execute("DEL", redis_store.key(Timeline(INBOX, ME)))
    monkeypatch.setattr(Timeline, "cap", 10)
    queries.read_feed(ME, None, 100)
    world.queues.drain()
    redis.execute("DEL", redis_store.older_key(ME))
    as_another_process()
    with mysql_away():
        page = queries.read_feed(ME, None, 30)
        assert 0 < len(page.items) < 30
        assert page.last is not None
        with pytest.raises(MysqlDown):
            queries.read_feed(ME, page.last, 30)
    assert ids([*page.items, *queries.read_feed(ME, page.last, 100).items]) == expected_feed(ME)


def test_without_mysql_an_author_unfollowed_in_redis_is_hidden(
    world: World, mysql_away: Away
) -> None:
    author = OTHERS[100 % 20]
    scroll(ME, 20)
    with mysql_away():
        react.react(FOLLOW, Target("user", author), ME, False)
        shown = queries.read_feed(ME, None, 20).items
    assert len(shown) == 20
    assert all(view.text.author_id != author for view in shown)


def test_without_the_queue_the_feed_is_read(world: World) -> None:
    redis.execute("FLUSHALL")
    world.queues.away = True
    assert ids(scroll(ME, 20)) == expected_feed(ME)


def test_a_failure_of_redis_is_reported_as_such_without_a_fallback_token(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Any:
        raise RedisDown("by the test")

    monkeypatch.setattr(queries, "_fallback_budget", TokenBucket(0.001, 0))
    monkeypatch.setattr(redis_store, "read_pages", fail)
    with pytest.raises(RedisDown):
        queries.read_feed(ME, None, 5)
    forget()


def test_missing_posts_of_a_celebrity_are_read_from_mysql(world: World) -> None:
    mysql.write("INSERT INTO celebrity (user_id, announced) VALUES (%s, 1)", (OTHERS[0],))
    redis.execute("FLUSHALL")
    queries.read_feed(ME, None, 5)
    world.queues.drain()
    assert ids(scroll(ME, 7)) == expected_feed(ME)
    world.queues.drain()
    expected = expected_feed(ME)[:50]
    for _ in range(2):
        as_another_process()
        queries.read_feed(ME, None, 50)
    as_another_process()
    with counting_work() as work:
        assert ids(queries.read_feed(ME, None, 50).items) == expected
    assert (work.statements, work.round_trips) == (0, 6)
    redis.execute("DEL", redis_store.key(Timeline(POSTS, OTHERS[0])))
    assert ids(scroll(ME, 7)) == expected_feed(ME)

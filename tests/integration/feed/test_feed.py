"""GET /feed: whole items, in a constant number of round trips; what is away; hostile questions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from plaza import reactions
from plaza.content import ListPosition, commands
from plaza.content import queries as content_queries
from plaza.feed import queries, redis_store
from plaza.feed.model import INBOX, POSTS, Timeline
from plaza.infra import mysql, redis
from plaza.infra.http import pack_cursor
from plaza.infra.mysql import MysqlDown
from plaza.infra.process import clear_caches
from plaza.infra.redis import RedisDown
from plaza.infra.token_bucket import TokenBucket
from plaza.reactions import COLLECT, FOLLOW, LIKE, Target, react
from tests.integration.conftest import Away
from tests.support.content_api import as_another_process, counting_work
from tests.support.content_api import ask as ask_any
from tests.support.feeds import BASE_US, ids, insert_follows, insert_posts, scroll, truth
from tests.support.plaza import World, forget
from tests.support.stores import add_users, explain

SetUp = Callable[..., None]
ME = 7
OTHERS = range(11, 31)

ask = partial(ask_any, "GET", folder="api/feed", user=ME)


@pytest.fixture
def world(plaza: World) -> World:
    """I follow twenty, who have posted a hundred times; my inbox is built."""
    add_users(ME, *OTHERS)
    insert_follows([(ME, other) for other in OTHERS])
    insert_posts([(n, OTHERS[n % 20], BASE_US + n // 3) for n in range(1, 101)])
    queries.read_feed(ME, None, 1)
    plaza.queues.drain()
    return plaza


@pytest.fixture
def many_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many reads in Redis' place as a test needs."""
    for module in (queries, reactions.queries):
        monkeypatch.setattr(module, "_fallback_budget", TokenBucket(1000, 1000))


# ---------------------------------------------------------------- what is answered


def test_an_item_is_whole(world: World) -> None:
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
        "body": "b",
        "images": [],
        "created_at": item["created_at"],
        "author": {"id": "11", "nickname": item["author"]["nickname"], "avatar": None},
        "likes": 2,
        "collects": 1,
        "comments": 0,
        "viewers": 0,
        "mine": {"liked": True, "collected": False},
        "exact": True,
    }


def test_the_feed_is_followed_to_its_end_by_its_cursors(world: World) -> None:
    seen, path = [], "/feed?limit=7"
    while path:
        page = ask(path).body
        seen += [int(item["id"]) for item in page["items"]]
        path = f"/feed?limit=7&cursor={page['next']}" if page["next"] else ""
    assert seen == list(range(100, 0, -1))


def test_who_follows_nobody_has_an_empty_feed(world: World) -> None:
    for _ in range(2):
        reply = ask("/feed", user=99)
        assert (reply.status, reply.body) == (200, {"items": [], "next": None})
        world.queues.drain()


def test_a_feed_needs_a_session(world: World) -> None:
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
def test_a_hostile_question_is_a_bad_input(world: World, query: str) -> None:
    reply = ask(f"/feed?{query}")
    assert (reply.status, reply.slug) == (400, "invalid-request"), reply.body


@pytest.mark.parametrize(
    ("place", "found"),
    [((0, 1), 0), ((1, 2**63 - 1), 0), ((BASE_US + 1, 4), 3), ((253_402_214_400_000_000, 1), 100)],
)
def test_a_cursor_that_nobody_was_given_is_a_place_like_any_other(
    world: World, place: tuple[int, int], found: int
) -> None:
    for flush in (False, True):
        if flush:
            redis.execute("FLUSHALL")
        page = ask(f"/feed?limit=100&cursor={pack_cursor(*place)}").body
        assert len(page["items"]) == found


# ---------------------------------------------------------------- at once, and how much it takes


def test_what_is_deleted_is_not_shown_from_then_on_and_leaves_the_inbox_when_that_is_seen(
    world: World,
) -> None:
    commands.delete(Target("post", 99), OTHERS[99 % 20])
    assert ids(queries.read_feed(ME, None, 3).items) == [100, 98, 97]
    members = redis.execute("ZRANGE", redis_store.key(Timeline(INBOX, ME)), 0, -1)
    assert not [m for m in members if m.startswith(f"{99:019d}")]
    assert [m for m in members if m.startswith(f"{100:019d}")]


def test_what_redis_lost_the_text_of_is_not_taken_for_deleted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_queries, "read_posts", lambda post_ids, actor_id: {})
    queries.read_feed(ME, None, 3)
    members = redis.execute("ZRANGE", redis_store.key(Timeline(INBOX, ME)), 0, -1)
    assert sum(":" in member for member in members) == 100


def test_who_is_not_followed_any_more_is_not_shown_from_then_on(world: World) -> None:
    author = OTHERS[100 % 20]
    react.react(FOLLOW, Target("user", author), ME, False)
    assert all(whole.text.author_id != author for whole in scroll(ME, 7))
    assert len(scroll(ME, 7)) == 95
    world.queues.drain()
    assert ids(scroll(ME, 7)) == truth(ME)


def test_a_page_is_full_though_most_of_the_inbox_is_deleted(world: World) -> None:
    mysql.write("UPDATE content SET deleted_at = NOW(6) WHERE content_id BETWEEN 20 AND 95")
    with counting_work() as work:
        page = queries.read_feed(ME, None, 10)
    assert ids(page.items) == [100, 99, 98, 97, 96, 19, 18, 17, 16, 15]
    assert work.round_trips < 60
    assert work.statements < 30
    assert ids(scroll(ME, 10)) == truth(ME)


@pytest.mark.parametrize("limit", [1, 7, 20, 99])
def test_a_warm_page_takes_no_statement_and_seven_round_trips_whatever_it_holds(
    world: World, limit: int
) -> None:
    queries.read_feed(ME, None, limit)
    as_another_process()
    with counting_work() as work:
        assert len(queries.read_feed(ME, None, limit).items) == limit
    assert (work.statements, work.round_trips) == (0, 7)


@pytest.mark.parametrize("limit", [1, 7, 20, 99])
def test_a_page_below_the_floor_takes_as_many_whatever_it_holds(
    world: World, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis.execute("DEL", redis_store.key(Timeline(INBOX, ME)))
    monkeypatch.setattr(Timeline, "cap", 10)
    queries.read_feed(ME, None, 100)
    world.queues.drain()
    place = ListPosition(BASE_US + 33, 99)
    queries.read_feed(ME, place, limit)
    with counting_work() as work:
        queries.read_feed(ME, place, limit)
    assert work.statements <= 7
    assert work.round_trips <= 7


def test_the_posts_of_authors_are_found_by_time_in_the_index(world: World) -> None:
    from plaza.feed import mysql_store

    asked: list[tuple[str, Any]] = []
    fetch = mysql.fetch_all

    def explained(sql: str, args: Any = ()) -> Any:
        asked.append((sql, args))
        return fetch(sql, args)

    insert_posts([(n, 50 + n % 300, BASE_US - n * 10**9) for n in range(1000, 4000)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mysql, "fetch_all", explained)
        mysql_store.read_page(range(50, 350), ListPosition(BASE_US, 1), BASE_US, 5)
    sql, args = asked[0]
    plan = explain(sql, args)[0]
    assert (plan["type"], plan["key"]) == ("range", "by_author")
    assert int(plan["rows"]) < 1_500, "not all that they ever posted"


# ---------------------------------------------------------------- what is away


def test_without_redis_the_feed_is_read_from_mysql(
    world: World, redis_away: Away, many_tokens: None
) -> None:
    expected = truth(ME)
    with redis_away():
        reply = ask("/feed?limit=5")
        assert [int(item["id"]) for item in reply.body["items"]] == expected[:5]
        assert reply.body["items"][0]["exact"] is False
        assert ids(scroll(ME, 40)) == expected


def test_without_redis_mysql_is_not_asked_by_everybody(
    world: World, redis_away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "_fallback_budget", TokenBucket(0.001, 2))
    with redis_away():
        statuses = [ask("/feed?limit=1").status for _ in range(4)]
    assert statuses == [200, 200, 503, 503]


def test_an_emptied_redis_is_filled_again_and_nothing_is_missing_meanwhile(world: World) -> None:
    redis.execute("FLUSHALL")
    clear_caches()  # what memory holds is not read again, so Redis would not get it
    assert ids(scroll(ME, 7)) == truth(ME)
    world.queues.drain()
    with counting_work() as work:
        queries.read_feed(ME, None, 7)
    assert work.statements == 0


def test_without_mysql_a_warm_feed_is_read_from_redis(world: World, mysql_away: Away) -> None:
    expected = ids(scroll(ME, 20))
    with mysql_away():
        assert ids(scroll(ME, 20)) == expected
        assert ask("/feed").status == 200


def test_without_mysql_a_feed_that_redis_lacks_is_unavailable(
    world: World, mysql_away: Away
) -> None:
    with mysql_away():
        reply = ask("/feed", user=99)
    assert (reply.status, reply.slug) == (503, "unavailable")
    assert int(reply.headers["retry-after"]) > 0


def test_without_mysql_a_page_ends_at_the_floor_and_says_that_there_is_more(
    world: World, mysql_away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis.execute("DEL", redis_store.key(Timeline(INBOX, ME)))
    monkeypatch.setattr(Timeline, "cap", 10)
    queries.read_feed(ME, None, 100)
    world.queues.drain()
    as_another_process()
    with mysql_away():
        page = queries.read_feed(ME, None, 30)
        assert 0 < len(page.items) < 30
        assert page.last is not None
        with pytest.raises(MysqlDown):
            queries.read_feed(ME, page.last, 30)
    assert ids([*page.items, *queries.read_feed(ME, page.last, 100).items]) == truth(ME)


def test_without_mysql_whom_redis_knows_as_left_is_not_shown(
    world: World, mysql_away: Away
) -> None:
    author = OTHERS[100 % 20]
    scroll(ME, 20)
    with mysql_away():
        react.react(FOLLOW, Target("user", author), ME, False)
        shown = queries.read_feed(ME, None, 20).items
    assert len(shown) == 20
    assert all(whole.text.author_id != author for whole in shown)


def test_without_the_queue_the_feed_is_read(world: World) -> None:
    redis.execute("FLUSHALL")
    world.queues.away = True
    assert ids(scroll(ME, 20)) == truth(ME)


def test_redis_that_goes_away_in_the_middle_is_no_fault_of_ours(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> Any:
        raise RedisDown("away")

    monkeypatch.setattr(queries, "_fallback_budget", TokenBucket(0.001, 0))
    monkeypatch.setattr(redis_store, "read_pages", away)
    with pytest.raises(RedisDown):
        queries.read_feed(ME, None, 5)
    forget()


def test_a_list_of_a_star_that_redis_lacks_is_made_up_for_by_mysql(world: World) -> None:
    mysql.write("INSERT INTO star (user_id, announced) VALUES (%s, 1)", (OTHERS[0],))
    redis.execute("FLUSHALL")
    queries.read_feed(ME, None, 5)
    world.queues.drain()
    assert ids(scroll(ME, 7)) == truth(ME)
    world.queues.drain()
    expected = truth(ME)[:50]
    for _ in range(2):
        as_another_process()
        queries.read_feed(ME, None, 50)
    as_another_process()
    with counting_work() as work:
        assert ids(queries.read_feed(ME, None, 50).items) == expected
    assert (work.statements, work.round_trips) == (0, 8)
    redis.execute("DEL", redis_store.key(Timeline(POSTS, OTHERS[0])))
    assert ids(scroll(ME, 7)) == truth(ME)

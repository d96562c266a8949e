"""Lists without a request for each item: likers with cards, reactions with posts, reads by id."""

from __future__ import annotations

from typing import Any

import pytest

from plaza.core.reactions import COLLECT, LIKE, Target, queries, react
from plaza.core.targets import lookup
from plaza.infra.mysql import mysql
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.people.users import likers
from tests.support.content_api import (
    POST,
    add_users,
    as_another_process,
    ask,
    comment,
    counting_work,
    create,
    post,
)
from tests.support.plaza import World

USERS = range(7, 27)


@pytest.fixture(autouse=True)
def users(world: World) -> None:
    add_users(*USERS)


def like(world: World, post_id: str, *actors: int) -> None:
    for actor in actors:
        react.react(LIKE, Target("post", int(post_id)), actor, True)
    world.queues.drain()


def card(user: int) -> dict[str, Any]:
    return {"id": str(user), "nickname": f"user{user}", "avatar": None}


def test_likers_have_a_nickname_and_an_avatar(world: World) -> None:
    post_id = post()
    like(world, post_id, 8, 99, 7)
    mysql.write("UPDATE user SET avatar = 'https://a.example/8.png' WHERE id = 8")
    items = ask("GET", f"/posts/{post_id}/likers", user=None).body["items"]
    assert [item["user"] for item in items] == [
        card(8) | {"avatar": "https://a.example/8.png"},
        {"id": "99", "nickname": "unknown user", "avatar": None},
        card(7),
    ]
    assert [item["user_id"] for item in items] == ["8", "99", "7"]


def test_a_page_of_likers_costs_the_same_for_any_length(world: World) -> None:
    post_id = post()
    like(world, post_id, *USERS)
    ask("GET", f"/posts/{post_id}/likers?limit=20")
    costs = []
    for limit in (1, 5, 20):
        with counting_work() as work:
            assert len(ask("GET", f"/posts/{post_id}/likers?limit={limit}").body["items"]) == limit
        costs.append((work.statements, work.round_trips))
    assert len(set(costs)) == 1
    assert costs[0][0] == 0


def test_a_post_has_its_first_five_likers(world: World) -> None:
    post_id = post()
    assert ask("GET", f"/posts/{post_id}").body["likers"] == []
    like(world, post_id, *range(20, 12, -1))
    assert ask("GET", f"/posts/{post_id}").body["likers"] == [card(u) for u in range(20, 15, -1)]


def test_a_post_is_read_without_its_likers_while_lists_are_limited(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a list that is too long for Redis, and an empty budget of lists."""
    post_id = post()
    like(world, post_id, 8)
    monkeypatch.setattr(queries, "_newest_reactors", lambda *_: (False, []))
    monkeypatch.setattr(queries, "_list_budget", TokenBucket(0.0001, 0, clock=lambda: 0.0))
    reply = ask("GET", f"/posts/{post_id}")
    assert (reply.status, reply.body["likes"], reply.body["likers"]) == (200, 1, None)


def test_my_likes_and_collects_have_their_posts_on_request(world: World) -> None:
    posts = [post(8) for _ in range(3)]
    of_post = comment(posts[0], 8)
    react.react(LIKE, Target("comment", int(of_post)), 7, True)
    for post_id in posts:
        like(world, post_id, 7)
        react.react(COLLECT, Target("post", int(post_id)), 7, True)
    world.queues.drain()
    assert ask("DELETE", f"/posts/{posts[1]}", user=8).status == 204
    as_another_process()
    plain = ask("GET", "/users/me/likes").body["items"]
    assert [item["post"] for item in plain] == [None] * 4
    items = ask("GET", "/users/me/likes?expand=post").body["items"]
    assert [(item["type"], item["id"]) for item in items] == [
        ("post", posts[2]),
        ("post", posts[1]),
        ("post", posts[0]),
        ("comment", of_post),
    ]
    assert [item["post"] and item["post"]["id"] for item in items] == [
        posts[2],
        None,
        posts[0],
        None,
    ]
    assert items[0]["post"]["mine"] == {"liked": True, "collected": True}
    assert [item["comment"] for item in items] == [None] * 4
    expanded = ask("GET", "/users/me/likes?expand=target").body["items"]
    assert [item["post"] and item["post"]["id"] for item in expanded] == [
        item["post"] and item["post"]["id"] for item in items
    ]
    assert expanded[3]["comment"]["id"] == of_post
    assert expanded[3]["comment"]["mine"] == {"liked": True, "collected": False}
    assert expanded[3]["review"] is None
    collects = ask("GET", "/users/me/collects?expand=post&limit=1").body
    assert collects["items"][0]["post"]["id"] == posts[2]
    rest = ask("GET", f"/users/me/collects?expand=post&cursor={collects['next']}").body
    assert [item["id"] for item in rest["items"]] == posts[1::-1]


def test_an_expanded_list_costs_the_same_for_any_length(world: World) -> None:
    for _ in range(8):
        like(world, post(8), 7)
        target = Target("comment", int(comment(post(8), 8)))
        react.react(LIKE, target, 7, True)
        world.queues.drain()
    ask("GET", "/users/me/likes?expand=target")
    costs = []
    for limit in (2, 16):
        as_another_process()
        with counting_work() as work:
            page = ask("GET", f"/users/me/likes?expand=target&limit={limit}").body["items"]
        assert all(item["post"] or item["comment"] for item in page)
        costs.append((work.statements, work.round_trips))
    assert costs[0] == costs[1]
    assert costs[0][0] == 0


def test_pages_of_long_posts_are_shorter_and_complete(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plaza.social.content.model.MAX_PAGE_BYTES", 3_000)
    posts = [create("/posts", POST | {"body": "x" * 2_000}, 8) for _ in range(5)]
    for post_id in posts:
        like(world, post_id, 7)
    for path in (f"/posts?ids={','.join(posts)}", "/users/me/likes?expand=post"):
        items, cursor = [], ""
        for _ in range(5):
            page = ask("GET", path + cursor).body
            assert len(page["items"]) <= 2
            items += [item["id"] for item in page["items"]]
            if page["next"] is None:
                break
            cursor = f"&cursor={page['next']}"
        assert sorted(items) == sorted(posts)


# ---------------------------------------------------------------- by id


def test_posts_are_listed_by_id_without_unknown_and_deleted_ones(world: World) -> None:
    posts = [post(), post(8), post()]
    assert ask("DELETE", f"/posts/{posts[2]}").status == 204
    expected = [posts[1], "4711", posts[0], posts[2], posts[1]]
    page = ask("GET", f"/posts?ids={','.join(expected)}", user=None).body
    assert [item["id"] for item in page["items"]] == [posts[1], posts[0]]
    assert page["next"] is None
    assert ask("GET", f"/posts?ids={posts[0]}").body["items"][0]["mine"] is not None


@pytest.mark.parametrize("path", ["/posts?ids=", "/users?ids="])
def test_reads_by_id_cost_the_same_for_any_number_of_ids(world: World, path: str) -> None:
    posts = [post() for _ in range(len(USERS))]
    ids = posts if path.startswith("/posts") else [str(user) for user in USERS]
    folder = "api/content" if path.startswith("/posts") else "api/users"
    ask("GET", path + ",".join(ids), folder=folder)
    costs = []
    for count in (1, len(ids)):
        as_another_process()
        with counting_work() as work:
            page = ask("GET", path + ",".join(ids[:count]), folder=folder).body
        assert [item["id"] for item in page["items"]] == ids[:count]
        costs.append((work.statements, work.round_trips))
    assert costs[0] == costs[1]
    assert costs[0][0] == 0
    assert costs[0][1] <= 6


@pytest.mark.parametrize("path", ["/posts?ids=", "/users?ids="])
def test_reads_of_unknown_ids_are_limited_by_the_budget(
    world: World, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    folder = "api/content" if path.startswith("/posts") else "api/users"
    monkeypatch.setattr(lookup, "_lookup_budget", TokenBucket(0.0001, 5, clock=lambda: 0.0))
    statuses = []
    with counting_work() as work:
        for first in range(1_000, 1_300, 10):
            ids = ",".join(map(str, range(first, first + 10)))
            statuses.append(ask("GET", path + ids, user=None, folder=folder).status)
    assert statuses == [200] * 5 + [503] * 25
    assert work.statements == 5


def test_users_are_listed_by_id_with_their_totals(world: World) -> None:
    post(8)
    page = ask("GET", "/users?ids=8,4711,7,8", folder="api/users").body
    assert [(item["id"], item["posts"]) for item in page["items"]] == [("8", 1), ("7", 0)]
    single = ask("GET", "/users/8", folder="api/users").body
    assert page["items"][0] == single
    assert page["next"] is None


def test_hot_first_likers_cost_anonymous_callers_one_read_a_second(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(likers._hot_likers, "_hot_per_s", 2)
    post_id = post()
    like(world, post_id, 8)
    costs = []
    for _ in range(6):
        with counting_work() as work:
            assert ask("GET", f"/posts/{post_id}", user=None).body["likers"] == [card(8)]
        costs.append(work.round_trips)
    assert costs[-1] == costs[1] - 2, "one for the list, one for the cards"

"""The routes of notifications: the badge, the list, the mark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from plaza.core.reactions import FOLLOW, LIKE, Target, react
from plaza.infra.mysql import mysql
from plaza.notifications.notifications.listed import decode_order, encode_order
from plaza.people.blocks import block_user
from tests.support.content_api import Reply, ask, comment, counting_work, post
from tests.support.plaza import World
from tests.support.stores import add_users
from tests.support.unread import check_unread, turn_on

AUTHOR, OTHER, THIRD = 7, 8, 9
SUBJECT = {"type": "post", "id": "1"}


@pytest.fixture(autouse=True)
def world(plaza: World) -> Iterator[World]:
    add_users(AUTHOR, OTHER, THIRD, *range(20, 30))
    turn_on()
    yield plaza
    check_unread()


def call(method: str, path: str, body: Any = None, user: int = AUTHOR) -> Reply:
    reply = ask(method, f"/users/me/notifications{path}", body, user=user)
    assert reply.headers["cache-control"] in ("no-cache", "no-store", "private, no-cache")
    return reply


def like(world: World, post_id: str, *actors: int) -> None:
    for actor in actors:
        react.react(LIKE, Target("post", int(post_id)), actor, True)
    world.queues.drain()


def test_a_unread_has_the_number_of_notifications_with_something_new(world: World) -> None:
    assert call("GET", "/unread").body == {"unread": 0, "at": "1---------"}
    made = post(AUTHOR)
    like(world, made, OTHER, THIRD, AUTHOR)
    comment(made, OTHER)
    react.react(FOLLOW, Target("user", AUTHOR), OTHER, True)
    world.queues.drain()
    unread = call("GET", "/unread").body
    assert unread["unread"] == 3
    page = call("GET", "").body
    assert {key: page[key] for key in unread} == unread
    assert page["next"] is None
    groups = {item["kind"]: item for item in page["items"]}
    likes = groups["like"]
    assert (likes["total"], likes["fresh"], likes["read"]) == (2, 2, False)
    assert likes["subject"] == {
        "type": "post",
        "id": made,
        "text": "Noodles",
        "url": None,
    }
    assert [card["id"] for card in likes["actors"]] == [str(THIRD), str(OTHER)]
    assert groups["comment"]["total"] == 1
    assert [card["id"] for card in groups["comment"]["actors"]] == [str(OTHER)]
    follow = groups["follow"]
    assert (follow["subject"], follow["total"]) == (
        {"type": "user", "id": str(AUTHOR), "text": None, "url": None},
        1,
    )


def test_a_kind_of_another_version_is_left_out_of_the_list(world: World) -> None:
    """Given a kind that the version after has, and a rollback."""
    made = post(AUTHOR)
    like(world, made, OTHER)
    comment(made, OTHER)
    world.queues.drain()
    mysql.write("UPDATE notification_group SET kind = 'mention' WHERE kind = 'like'")
    page = call("GET", "")
    mysql.write("UPDATE notification_group SET kind = 'like' WHERE kind = 'mention'")
    assert (page.status, [item["kind"] for item in page.body["items"]]) == (200, ["comment"])


def test_a_mark_leaves_what_is_new_since_the_list(world: World) -> None:
    made = post(AUTHOR)
    like(world, made, 20, 21)
    page = call("GET", "").body
    like(world, made, 22)
    marked = call("PUT", "/read", {"at": page["at"]}).body
    assert (marked["unread"], marked["left"]) == (1, 0)
    assert marked["at"] > page["at"]
    assert call("GET", "/unread").body == {"unread": 1, "at": marked["at"]}
    [item] = call("GET", "").body["items"]
    assert (item["total"], item["fresh"]) == (3, 1)


def test_a_mark_of_one_notification_leaves_the_others(world: World) -> None:
    first, second = post(AUTHOR), post(AUTHOR)
    like(world, first, 20)
    like(world, second, 20)
    at = call("GET", "").body["at"]
    groups = [{"kind": "like", "subject": {"type": "post", "id": first}}]
    assert call("PUT", "/read", {"at": at, "groups": groups}).body["unread"] == 1
    items = call("GET", "").body["items"]
    assert {item["subject"]["id"]: item["read"] for item in items} == {first: True, second: False}


@pytest.mark.parametrize(
    "body",
    [
        {"at": "1--------."},
        {"at": ""},
        {},
        {"at": "1---------", "groups": [{"kind": "collect", "subject": SUBJECT}]},
        {"at": "1---------", "groups": [{}] * 101},
    ],
)
def test_a_mark_that_no_list_allows_is_refused(body: dict[str, Any]) -> None:
    assert call("PUT", "/read", body).status == 400


def test_a_mark_of_a_sequence_that_no_list_had_marks_nothing(world: World) -> None:
    like(world, post(AUTHOR), 20)
    at = call("GET", "/unread").body["at"]
    for other in ("1zzzzzzzzz", "x", "2---------"):
        reply = call("PUT", "/read", {"at": other})
        assert reply.body == {"unread": 1, "at": at, "left": 0}


def test_a_head_and_a_list_in_read_only_mode_store_no_checkpoint(world: World) -> None:
    made = post(AUTHOR)
    like(world, made, 20)
    assert call("HEAD", "").status == 200
    assert mysql.fetch_all("SELECT shown_sequence FROM notification_group") == [(0,)]


def test_pages_follow_each_other(world: World) -> None:
    made = [post(AUTHOR) for _ in range(5)]
    for post_id in made:
        like(world, post_id, 20)
    seen, cursor = [], ""
    while True:
        page = call("GET", f"?limit=2{cursor}").body
        seen += [item["subject"]["id"] for item in page["items"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert seen == made[::-1]
    assert call("GET", "?cursor=abc").status == 400


def test_blocked_users_and_deleted_posts_are_not_shown(world: World) -> None:
    kept, deleted = post(AUTHOR), post(AUTHOR)
    like(world, kept, 20, 21)
    like(world, deleted, 20)
    block_user.block(20, AUTHOR)
    assert ask("DELETE", f"/posts/{deleted}", user=AUTHOR).status == 204
    [item] = call("GET", "").body["items"]
    assert [card["id"] for card in item["actors"]] == ["21"]
    assert (item["total"], call("GET", "/unread").body["unread"]) == (2, 1)


def test_what_was_taken_back_is_not_listed(world: World) -> None:
    made = post(AUTHOR)
    like(world, made, 20)
    react.react(LIKE, Target("post", int(made)), 20, False)
    world.queues.drain()
    page = call("GET", "").body
    assert (page["items"], page["unread"]) == ([], 0)


def test_a_list_costs_the_same_for_any_length(world: World) -> None:
    for _ in range(6):
        made = post(AUTHOR)
        like(world, made, 20, 21)
        comment(made, OTHER)
    world.queues.drain()
    call("GET", "")
    costs = []
    for limit in (2, 12):
        with counting_work() as work:
            assert len(call("GET", f"?limit={limit}").body["items"]) == limit
        costs.append(work.statements)
    assert costs[0] == costs[1]


def test_a_badge_is_read_in_one_round_trip(world: World) -> None:
    call("GET", "/unread")
    with counting_work() as work:
        call("GET", "/unread")
    assert work.statements == 0


def test_a_caller_without_a_session_has_no_unread() -> None:
    for method, path in (("GET", ""), ("GET", ""), ("PUT", "/read")):
        reply = ask(method, f"/users/me/notifications{path}", None, user=None)
        assert reply.status == 401


def test_order_tokens_sort_as_their_versions() -> None:
    versions = [0, 1, 63, 64, 2**40, 2**40 + 57, 2**53 - 1]
    tokens = [encode_order(version) for version in versions]
    assert tokens == sorted(tokens)
    assert [decode_order(token) for token in tokens] == versions
    for text in ("", "1", "2---------", "1--------.", "1----------"):
        assert decode_order(text) == -1

"""Follows, lists of users and profiles on the deployed stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest

from tests.e2e.client import Client, problem, wait_until

IDS = count(5_000_001)


@pytest.fixture
def totals(rows: Callable[..., Any]) -> Callable[[int], tuple[tuple[int, int], tuple[int, int]]]:
    """``totals(7)`` returns (followers, following) of a user by counter and by rows."""

    def read(user_id: int) -> tuple[tuple[int, int], tuple[int, int]]:
        counted = rows(
            "SELECT followers_total, following_total FROM user_counter WHERE user_id = %s", user_id
        )
        of_rows = rows(
            "SELECT (SELECT COUNT(*) FROM reaction WHERE target_type = 'user' AND target_id = %s"
            " AND kind = 'follow' AND state = 1), (SELECT COUNT(*) FROM reaction"
            " WHERE actor_id = %s AND kind = 'follow' AND state = 1)",
            user_id,
            user_id,
        )
        return (counted[0] if counted else (0, 0)), of_rows[0]

    return read


def listed(items: Iterable[Any]) -> list[str]:
    """Return the user ids of a list."""
    return [item["user"]["id"] for item in items]


def test_a_follow_is_stored_counted_and_taken_back(
    make_users: Callable[[int], list[tuple[int, Client]]],
    anonymous: Client,
    totals: Callable[[int], tuple[tuple[int, int], tuple[int, int]]],
) -> None:
    (ada_id, ada), (bo_id, bo) = make_users(2)
    first = bo("PUT", f"/users/{ada_id}/followers/me")
    at = first.json["followers_at"]
    followed = {"following": True, "followers": 1, "followers_at": at, "changed": True}
    assert (first.status, first.json) == (200, followed)
    assert bo("PUT", f"/users/{ada_id}/followers/me").json["changed"] is False
    assert bo("GET", f"/users/{ada_id}").json["mine"]["following"] is True
    wait_until("it is counted", lambda: totals(ada_id) == ((1, 0), (1, 0)))
    wait_until("and shown", lambda: bo("GET", "/users/me").json["following"] == 1)
    assert totals(bo_id) == ((0, 1), (0, 1))
    profile = anonymous("GET", f"/users/{ada_id}").json
    assert (profile["followers"], profile["mine"], profile["exact"]) == (1, None, True)
    last = bo("DELETE", f"/users/{ada_id}/followers/me").json
    after = last["followers_at"]
    assert last == followed | {"following": False, "followers": 0, "followers_at": after}
    assert at < after
    wait_until("it is taken back", lambda: totals(ada_id) == ((0, 0), (0, 0)))
    assert ada("GET", "/users/me").json["followers"] == 0


def test_concurrent_followers_are_counted_once_each(
    make_users: Callable[[int], list[tuple[int, Client]]],
    anonymous: Client,
    totals: Callable[[int], tuple[tuple[int, int], tuple[int, int]]],
) -> None:
    [(celebrity_id, _)], fans = make_users(1), make_users(12)
    path = f"/users/{celebrity_id}/followers/me"
    with ThreadPoolExecutor(6) as crowd:
        replies = list(crowd.map(lambda fan: fan[1]("PUT", path), fans * 3))
    assert {reply.status for reply in replies} == {200}
    assert sum(reply.json["changed"] for reply in replies) == 12
    wait_until("all are counted", lambda: totals(celebrity_id) == ((12, 0), (12, 0)))
    expected = sorted(fan_id for fan_id, _ in fans)
    wait_until(  # a list shows what was acknowledged, which follows the commit
        "all are listed",
        lambda: (
            sorted(
                map(int, listed(anonymous.plaza.users.list_followers(str(celebrity_id), limit=2)))
            )
            == expected
        ),
    )


def test_lists_of_users_are_newest_first_and_have_viewer_states(
    make_users: Callable[[int], list[tuple[int, Client]]],
    anonymous: Client,
    totals: Callable[[int], tuple[tuple[int, int], tuple[int, int]]],
) -> None:
    (ada_id, ada), (bo_id, bo), *others = make_users(6)
    ids = [str(other_id) for other_id, _ in others]
    for other_id in ids:
        ada("PUT", f"/users/{other_id}/followers/me")
    for other_id in ids[1:3]:
        bo("PUT", f"/users/{other_id}/followers/me")
    wait_until("all is saved", lambda: totals(ada_id)[0][1] == 4 and totals(bo_id)[0][1] == 2)
    wait_until(
        "and shown",
        lambda: listed(anonymous.plaza.users.list_following(str(ada_id), limit=2)) == ids[::-1],
    )
    assert listed(bo.plaza.users.list_common_follows(str(ada_id), limit=2)) == [ids[2], ids[1]]
    page = bo("GET", f"/users/{ada_id}/following").json
    mine = {item["user"]["id"]: item["mine"]["following"] for item in page["items"]}
    assert mine == {ids[0]: False, ids[1]: True, ids[2]: True, ids[3]: False}
    assert page["items"][0]["user"]["nickname"]
    refused = anonymous("GET", f"/users/{ada_id}/common-follows")
    assert (refused.status, problem(refused)) == (401, "unauthenticated")


def test_a_follow_of_oneself_or_of_an_unknown_user_is_refused(
    make_users: Callable[[int], list[tuple[int, Client]]], anonymous: Client
) -> None:
    [(ada_id, ada)] = make_users(1)
    refused = ada("PUT", f"/users/{ada_id}/followers/me")
    assert (refused.status, problem(refused)) == (409, "self-follow")
    for method, path in (
        ("PUT", "/users/4999999/followers/me"),
        ("GET", "/users/4999999"),
        ("GET", "/users/4999999/followers"),
        ("GET", "/users/4999999/following"),
        ("GET", "/users/4999999/common-follows"),
        ("GET", "/users/abc"),
        ("PUT", "/users/me/followers/me"),
        ("GET", "/users/9223372036854775808"),
    ):
        reply = ada(method, path)
        assert (reply.status, problem(reply)) == (404, "not-found"), path
    assert anonymous("PUT", f"/users/{ada_id}/followers/me").status == 401


def follow_4999(actor_id: int, rows: Callable[..., Any]) -> None:
    """Insert 4,999 follows with their log and counters, so that the audit stays clean."""
    rows(
        "INSERT INTO reaction (target_type, target_id, kind, actor_id, state, version)"
        " SELECT 'user', 4000000 + seq, 'follow', %s, 1, 1000 + seq FROM seq_1_to_4999",
        actor_id,
    )
    rows(
        "INSERT INTO reaction_log"
        " (target_type, target_id, kind, actor_id, version, state, change_by, total, db_version,"
        " create_date)"
        " SELECT target_type, target_id, kind, actor_id, version, 1, 1, 1, 1, '1970-01-01'"
        " FROM reaction WHERE actor_id = %s",
        actor_id,
    )
    rows(
        "INSERT INTO counter (target_type, target_id, kind, total, version)"
        " SELECT target_type, target_id, kind, 1, 1 FROM reaction WHERE actor_id = %s",
        actor_id,
    )
    rows(
        "INSERT INTO user_counter (user_id, followers_total, version)"
        " SELECT target_id, 1, 1 FROM reaction WHERE actor_id = %s",
        actor_id,
    )
    rows(
        "INSERT INTO user_counter (user_id, following_total, version) VALUES (%s, 4999, 4999)"
        " ON DUPLICATE KEY UPDATE following_total = 4999, version = user_counter.version + 1",
        actor_id,
    )


def test_a_user_at_the_follow_limit_can_follow_again_after_an_unfollow(
    make_users: Callable[[int], list[tuple[int, Client]]],
    rows: Callable[..., Any],
    totals: Callable[[int], tuple[tuple[int, int], tuple[int, int]]],
) -> None:
    (ada_id, ada), (bo_id, _), (cy_id, _) = make_users(3)
    follow_4999(ada_id, rows)
    assert ada("PUT", f"/users/{bo_id}/followers/me").status == 200
    refused = ada("PUT", f"/users/{cy_id}/followers/me")
    assert (refused.status, problem(refused)) == (409, "follow-limit")
    again = ada("PUT", f"/users/{bo_id}/followers/me")
    assert (again.status, again.json["changed"]) == (200, False)
    ada("DELETE", f"/users/{bo_id}/followers/me")

    def follow_cy() -> bool:
        return ada("PUT", f"/users/{cy_id}/followers/me").status == 200

    wait_until("the unfollow has released its hold", follow_cy)
    wait_until("it is stored", lambda: totals(ada_id) == ((0, 5000), (0, 5000)))


# ---------------------------------------------------------------- profiles


def test_a_profile_is_changed_by_its_owner_and_public(
    make_users: Callable[[int], list[tuple[int, Client]]], anonymous: Client
) -> None:
    (ada_id, ada), (_, bo) = make_users(2)
    assert anonymous("GET", f"/users/{ada_id}").status == 200
    body = {"nickname": "  Ada 🦊 ", "avatar": "https://pics.example/ada.png"}
    changed = ada("PATCH", "/users/me", body)
    assert changed.status == 200
    shown = {"nickname": "Ada 🦊", "avatar": "https://pics.example/ada.png"}
    for reply in (changed, ada("GET", "/users/me"), bo("GET", f"/users/{ada_id}")):
        assert {name: reply.json[name] for name in shown} == shown
        assert reply.json["id"] == str(ada_id)
    bo("PUT", f"/users/{ada_id}/followers/me")
    ada("PATCH", "/users/me", {"avatar": None})
    assert anonymous("GET", f"/users/{ada_id}").json["avatar"] is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"role": "admin"}, "body.role"),
        ({"nickname": "Ada", "role": "admin"}, "body.role"),
        ({"nickname": "Ada", "id": "1"}, "body.id"),
        ({}, "body"),
        ({"nickname": "\u200b"}, "body.nickname"),
        (b'{"nickname": "\\ud800"}', "body"),
        ({"avatar": "http://pics.example/a.png"}, "body.avatar"),
    ],
)
def test_an_invalid_profile_change_is_refused_and_not_stored(
    make_users: Callable[[int], list[tuple[int, Client]]],
    rows: Callable[..., Any],
    body: Any,
    field: str,
) -> None:
    [(ada_id, ada)] = make_users(1)
    before = rows("SELECT nickname, avatar, role, version FROM user WHERE id = %s", ada_id)
    refused = ada("PATCH", "/users/me", body, {"content-type": "application/json"})
    assert (refused.status, problem(refused)) == (400, "invalid-request")
    assert field in [error["field"] for error in refused.json["errors"]]
    assert rows("SELECT nickname, avatar, role, version FROM user WHERE id = %s", ada_id) == before
    assert before[0][2] == "user"


def test_private_data_of_other_users_is_neither_readable_nor_writable(
    make_users: Callable[[int], list[tuple[int, Client]]],
    anonymous: Client,
    add: Callable[..., int],
) -> None:
    (ada_id, ada), (_, bo) = make_users(2)
    post = add()
    ada("PUT", f"/posts/{post}/likes/me")
    for client in (bo, anonymous):
        for path in (f"/users/{ada_id}/likes", f"/users/{ada_id}/collects"):
            reply = client("GET", path)
            assert (reply.status, problem(reply)) == (404, "not-found")
        assert client("PATCH", f"/users/{ada_id}", {"nickname": "x"}).status in (404, 405)
        assert client("DELETE", f"/users/{ada_id}").status in (401, 403)
    assert bo("GET", "/users/me/likes").json["items"] == []
    for method, path in (("GET", "/users/me"), ("PATCH", "/users/me"), ("GET", "/users/me/likes")):
        assert (
            anonymous(method, path, {"nickname": "x"} if method == "PATCH" else None).status == 401
        )

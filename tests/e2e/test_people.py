"""People through the deployed template: following, lists of people, profiles."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest

from tests.e2e.client import Client, problem, wait_until

_ids = count(5_000_001)


@pytest.fixture
def some(user: Callable[[int], Client]) -> Callable[[int], list[tuple[int, Client]]]:
    """``some(3)``: as many users nobody knows yet, (id, client) each."""

    def make(number: int) -> list[tuple[int, Client]]:
        ids = [next(_ids) for _ in range(number)]
        return [(user_id, user(user_id)) for user_id in ids]

    return make


@pytest.fixture
def totals(rows: Callable[..., Any]) -> Callable[[int], tuple[tuple[int, int], tuple[int, int]]]:
    """``totals(7)``: (followers, following) of a user by counter, and the same by rows."""

    def ask(user_id: int) -> tuple[tuple[int, int], tuple[int, int]]:
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

    return ask


def listed(client: Client, path: str) -> list[str]:
    """The ids in a list of people, followed to its end two by two."""
    found, cursor = [], ""
    while True:
        page = client("GET", f"{path}?limit=2{cursor}").json
        found += [item["user"]["id"] for item in page["items"]]
        if page["next"] is None:
            return found
        cursor = f"&cursor={page['next']}"


def test_a_follow_goes_from_http_into_mysql_and_back(
    some: Callable[[int], list[tuple[int, Client]]],
    anyone: Client,
    totals: Callable[[int], tuple[tuple[int, int], tuple[int, int]]],
) -> None:
    (ada_id, ada), (bo_id, bo) = some(2)
    first = bo("PUT", f"/users/{ada_id}/followers/me")
    assert (first.status, first.json) == (200, {"following": True, "followers": 1, "changed": True})
    assert bo("PUT", f"/users/{ada_id}/followers/me").json["changed"] is False
    assert bo("GET", f"/users/{ada_id}").json["mine"] == {"following": True}
    wait_until("it is counted", lambda: totals(ada_id) == ((1, 0), (1, 0)))
    wait_until("and shown", lambda: bo("GET", "/users/me").json["following"] == 1)
    assert totals(bo_id) == ((0, 1), (0, 1))
    profile = anyone("GET", f"/users/{ada_id}").json
    assert (profile["followers"], profile["mine"], profile["exact"]) == (1, None, True)
    last = bo("DELETE", f"/users/{ada_id}/followers/me").json
    assert last == {"following": False, "followers": 0, "changed": True}
    wait_until("it is taken back", lambda: totals(ada_id) == ((0, 0), (0, 0)))
    assert ada("GET", "/users/me").json["followers"] == 0


def test_many_follow_one_at_once_and_each_counts_once(
    some: Callable[[int], list[tuple[int, Client]]],
    anyone: Client,
    totals: Callable[[int], tuple[tuple[int, int], tuple[int, int]]],
) -> None:
    [(star_id, _)], fans = some(1), some(12)
    path = f"/users/{star_id}/followers/me"
    with ThreadPoolExecutor(6) as crowd:
        replies = list(crowd.map(lambda fan: fan[1]("PUT", path), fans * 3))
    assert {reply.status for reply in replies} == {200}
    assert sum(reply.json["changed"] for reply in replies) == 12
    wait_until("all are counted", lambda: totals(star_id) == ((12, 0), (12, 0)))
    followers = listed(anyone, f"/users/{star_id}/followers")
    assert sorted(map(int, followers)) == sorted(fan_id for fan_id, _ in fans)


def test_lists_of_people_are_newest_first_and_say_whom_i_follow(
    some: Callable[[int], list[tuple[int, Client]]],
    anyone: Client,
    totals: Callable[[int], tuple[tuple[int, int], tuple[int, int]]],
) -> None:
    (ada_id, ada), (bo_id, bo), *others = some(6)
    ids = [str(other_id) for other_id, _ in others]
    for other_id in ids:
        ada("PUT", f"/users/{other_id}/followers/me")
    for other_id in ids[1:3]:
        bo("PUT", f"/users/{other_id}/followers/me")
    wait_until("all is saved", lambda: totals(ada_id)[0][1] == 4 and totals(bo_id)[0][1] == 2)
    wait_until("and shown", lambda: listed(anyone, f"/users/{ada_id}/following") == ids[::-1])
    assert listed(bo, f"/users/{ada_id}/common-follows") == [ids[2], ids[1]]
    page = bo("GET", f"/users/{ada_id}/following").json
    mine = {item["user"]["id"]: item["mine"]["following"] for item in page["items"]}
    assert mine == {ids[0]: False, ids[1]: True, ids[2]: True, ids[3]: False}
    assert page["items"][0]["user"]["nickname"]
    refused = anyone("GET", f"/users/{ada_id}/common-follows")
    assert (refused.status, problem(refused)) == (401, "unauthenticated")


def test_nobody_follows_themselves_or_somebody_who_is_not_there(
    some: Callable[[int], list[tuple[int, Client]]], anyone: Client
) -> None:
    [(ada_id, ada)] = some(1)
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
    assert anyone("PUT", f"/users/{ada_id}/followers/me").status == 401


def follow_4999(actor_id: int, rows: Callable[..., Any]) -> None:
    """As if the user had followed as many long ago: the audit looks at them, too."""
    rows(
        "INSERT INTO reaction (target_type, target_id, kind, actor_id, state, version)"
        " SELECT 'user', 4000000 + seq, 'follow', %s, 1, 1000 + seq FROM seq_1_to_4999",
        actor_id,
    )
    rows(
        "INSERT INTO reaction_log"
        " (target_type, target_id, kind, actor_id, version, state, change_by, db_version, create_date)"
        " SELECT target_type, target_id, kind, actor_id, version, 1, 1, 1, '1970-01-01'"
        " FROM reaction WHERE actor_id = %s",
        actor_id,
    )
    rows(
        "INSERT INTO content_counter (target_type, target_id, follow_total, follow_version)"
        " SELECT target_type, target_id, 1, 1 FROM reaction WHERE actor_id = %s",
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


def test_who_follows_as_many_as_anybody_may_follows_one_more_only_for_another(
    some: Callable[[int], list[tuple[int, Client]]],
    rows: Callable[..., Any],
    totals: Callable[[int], tuple[tuple[int, int], tuple[int, int]]],
) -> None:
    (ada_id, ada), (bo_id, _), (cy_id, _) = some(3)
    follow_4999(ada_id, rows)
    assert ada("PUT", f"/users/{bo_id}/followers/me").status == 200
    refused = ada("PUT", f"/users/{cy_id}/followers/me")
    assert (refused.status, problem(refused)) == (409, "follow-limit")
    again = ada("PUT", f"/users/{bo_id}/followers/me")
    assert (again.status, again.json["changed"]) == (200, False)
    ada("DELETE", f"/users/{bo_id}/followers/me")

    def room() -> bool:
        return ada("PUT", f"/users/{cy_id}/followers/me").status == 200

    wait_until("there is room for one", room)
    wait_until("it is saved", lambda: totals(ada_id) == ((0, 5000), (0, 5000)))


# ---------------------------------------------------------------- profiles


def test_a_profile_is_changed_by_its_owner_and_shown_to_all(
    some: Callable[[int], list[tuple[int, Client]]], anyone: Client
) -> None:
    (ada_id, ada), (_, bo) = some(2)
    assert anyone("GET", f"/users/{ada_id}").status == 200
    said = {"nickname": "  Ada 🦊 ", "avatar": "https://pics.example/ada.png"}
    changed = ada("PATCH", "/users/me", said)
    assert changed.status == 200
    shown = {"nickname": "Ada 🦊", "avatar": "https://pics.example/ada.png"}
    for reply in (changed, ada("GET", "/users/me"), bo("GET", f"/users/{ada_id}")):
        assert {name: reply.json[name] for name in shown} == shown
        assert reply.json["id"] == str(ada_id)
    bo("PUT", f"/users/{ada_id}/followers/me")
    ada("PATCH", "/users/me", {"avatar": None})
    assert anyone("GET", f"/users/{ada_id}").json["avatar"] is None


@pytest.mark.parametrize(
    ("said", "field"),
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
def test_what_is_not_ones_to_change_is_refused(
    some: Callable[[int], list[tuple[int, Client]]], rows: Callable[..., Any], said: Any, field: str
) -> None:
    [(ada_id, ada)] = some(1)
    before = rows("SELECT nickname, avatar, role, version FROM user WHERE id = %s", ada_id)
    refused = ada("PATCH", "/users/me", said, {"content-type": "application/json"})
    assert (refused.status, problem(refused)) == (400, "invalid-request")
    assert field in [error["field"] for error in refused.json["errors"]]
    assert rows("SELECT nickname, avatar, role, version FROM user WHERE id = %s", ada_id) == before
    assert before[0][2] == "user"


def test_nobody_changes_or_reads_what_is_somebody_elses(
    some: Callable[[int], list[tuple[int, Client]]], anyone: Client, add: Callable[..., int]
) -> None:
    (ada_id, ada), (_, bo) = some(2)
    post = add()
    ada("PUT", f"/posts/{post}/likes/me")
    for client in (bo, anyone):
        for path in (f"/users/{ada_id}/likes", f"/users/{ada_id}/collects"):
            reply = client("GET", path)
            assert (reply.status, problem(reply)) == (404, "not-found")
        assert client("PATCH", f"/users/{ada_id}", {"nickname": "x"}).status in (404, 405)
        assert client("DELETE", f"/users/{ada_id}").status in (404, 405)
    assert bo("GET", "/users/me/likes").json["items"] == []
    for method, path in (("GET", "/users/me"), ("PATCH", "/users/me"), ("GET", "/users/me/likes")):
        assert anyone(method, path, {"nickname": "x"} if method == "PATCH" else None).status == 401

"""The feed through the deployed template: follow, post, read, unfollow, delete."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from tests.e2e.client import Client, problem, wait_until

POST = {"kind": "note", "title": "Noodles", "body": "Ask for the thick ones.", "images": []}
_ids = count(5_800_001)


@pytest.fixture
def some(user: Callable[[int], Client]) -> Callable[[int], list[tuple[int, Client]]]:
    """``some(3)``: as many users nobody knows yet, (id, client) each."""

    def make(number: int) -> list[tuple[int, Client]]:
        ids = [next(_ids) for _ in range(number)]
        return [(user_id, user(user_id)) for user_id in ids]

    return make


def write(client: Client) -> str:
    reply = client("POST", "/posts", POST)
    assert reply.status == 201, reply.json
    return str(reply.json["id"])


def feed(client: Client, limit: int = 2) -> list[str]:
    """The ids of a feed, followed to its end."""
    found, cursor = [], ""
    while True:
        reply = client("GET", f"/feed?limit={limit}{cursor}")
        assert reply.status == 200, reply.json
        found += [item["id"] for item in reply.json["items"]]
        if reply.json["next"] is None:
            return found
        cursor = f"&cursor={reply.json['next']}"


def test_what_those_whom_i_follow_post_is_in_my_feed_until_it_is_deleted_or_i_leave(
    some: Callable[[int], list[tuple[int, Client]]],
) -> None:
    (ada_id, ada), (bo_id, bo), (_, me) = some(3)
    assert feed(me) == []
    before = write(ada)
    assert me("PUT", f"/users/{ada_id}/followers/me").status == 200
    # Some functions start here for the first time, which takes a while on a busy machine.
    wait_until("what she posted before I followed is there", lambda: feed(me) == [before], 120)
    first, second = write(ada), write(ada)
    wait_until("her new posts are there", lambda: feed(me) == [second, first, before])
    assert me("PUT", f"/users/{bo_id}/followers/me").status == 200
    third = write(bo)
    wait_until("his is on top", lambda: feed(me) == [third, second, first, before])

    [item] = me("GET", "/feed?limit=1").json["items"]
    assert item["author"]["id"] == str(bo_id)
    assert (item["likes"], item["mine"]) == (0, {"liked": False, "collected": False})
    assert me("PUT", f"/posts/{third}/likes/me").status == 200
    [item] = me("GET", "/feed?limit=1").json["items"]
    assert (item["likes"], item["mine"]["liked"]) == (1, True)

    assert ada("DELETE", f"/posts/{second}").status == 204
    wait_until("what is deleted is not there", lambda: feed(me) == [third, first, before])
    assert me("DELETE", f"/users/{ada_id}/followers/me").status == 200
    assert feed(me) == [third], "at once"


def test_a_feed_needs_a_session_and_good_questions(
    anyone: Client, some: Callable[[int], list[tuple[int, Client]]]
) -> None:
    [(_, me)] = some(1)
    refused = anyone("GET", "/feed")
    assert (refused.status, problem(refused)) == (401, "unauthenticated")
    for query in ("limit=0", "limit=101", "cursor=abc"):
        refused = me("GET", f"/feed?{query}")
        assert (refused.status, problem(refused)) == (400, "invalid-request")

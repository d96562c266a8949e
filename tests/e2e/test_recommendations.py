"""What readers are shown first, through the deployed template: likes, log, schedules, lists."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from local.stack.stack import Stack
from tests.e2e.client import Client, problem, wait_until

SHOP = 5_700_000
FIRST_USER = 5_700_001
PATIENCE_S = 120  # many functions start at once here
POST = {"kind": "note", "title": "Noodles", "body": "Ask for the thick ones.", "images": []}

# What the facts of the log changed: a like of somebody who likes it already changed nothing.
TURNS = (
    "SELECT target_id AS post_id, version DIV 3600000000 AS hour, change_by AS turn"
    " FROM reaction_log WHERE target_type = 'post' AND kind = 'like'"
)
LIVE = (
    " JOIN content AS c ON c.content_type = 'post' AND c.content_id = post_id"
    " AND c.deleted_at IS NULL"
)

Rows = Callable[..., tuple[Any, ...]]
User = Callable[[int], Client]


@pytest.fixture
def shop(rows: Rows, stack: Stack, anyone: Client) -> int:
    """A shop; its id."""
    return insert_shop(SHOP, rows, stack, anyone)


def insert_shop(shop_id: int, rows: Rows, stack: Stack, anyone: Client) -> int:
    """A shop that MySQL has, and that the binlog tells of; its id."""
    rows("INSERT IGNORE INTO shop (id, name) VALUES (%s, 'Noodles')", shop_id)
    stack.invoke("FollowBinlog", {})
    wait_until("the shop is known", lambda: anyone("GET", f"/shops/{shop_id}").status == 200)
    return shop_id


def pages(client: Client, path: str) -> list[dict[str, Any]]:
    """All items of a list, from page to page."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        reply = client("GET", path + cursor)
        assert reply.status == 200, reply.json
        found += reply.json["items"]
        if reply.json["next"] is None:
            return found
        cursor = f"&cursor={reply.json['next']}"


def like(user: User, path: str, counts: list[tuple[int, int]]) -> None:
    """As many users as ``counts`` says like the first, the second, ... of ``path``."""
    for target_id, count in counts:
        for n in range(count):
            reply = user(FIRST_USER + n)("PUT", f"/{path}/{target_id}/likes/me")
            assert reply.status == 200, reply.json


def saved(rows: Rows, target_type: str, counts: list[tuple[int, int]]) -> bool:
    """Whether MySQL has them all."""
    return all(
        rows(
            "SELECT COUNT(*) FROM reaction_log WHERE target_type = %s AND target_id = %s",
            target_type,
            target_id,
        )[0][0]
        == count
        for target_id, count in counts
    )


def test_the_best_reviews_of_a_shop_are_recommended(
    stack: Any, anyone: Client, user: User, shop: int, rows: Rows
) -> None:
    path = f"/shops/{shop}/reviews/recommended?limit=2"
    reviews = []
    for n in range(5):
        made = user(FIRST_USER + n)(
            "POST", f"/shops/{shop}/reviews", {"score": 4, "body": f"Number {n}."}
        )
        assert made.status == 201, made.json
        reviews.append(int(made.json["id"]))
    counts = list(zip(reviews, (1, 3, 0, 2, 1), strict=True))
    like(user, "reviews", counts)
    wait_until("the likes are saved", lambda: saved(rows, "review", counts), PATIENCE_S)
    assert stack.invoke("RollUpVotes", {})["rolled_up_to"] > 0
    stack.invoke("RefreshRecommendations", {})
    expected = [reviews[n] for n in (1, 3, 4, 0, 2)]

    def shown() -> list[int]:
        return [int(item["id"]) for item in pages(anyone, path)]

    wait_until("the list is made", lambda: shown() == expected, PATIENCE_S)
    assert rows("SELECT * FROM stale_list WHERE shop_id = %s", shop) == ()

    user(FIRST_USER)("PUT", f"/reviews/{reviews[2]}/likes/me")
    last = pages(user(FIRST_USER), path)[-1]
    assert (last["likes"], last["mine"]) == (1, {"liked": True}), "live, and in the old order"
    assert user(FIRST_USER + 1)("DELETE", f"/reviews/{reviews[1]}").status == 204
    wait_until("the deleted is not shown", lambda: shown() == expected[1:])


def test_a_cold_shop_is_empty_for_a_moment_and_then_right(
    anyone: Client, user: User, rows: Rows, stack: Stack
) -> None:
    insert_shop(SHOP + 1, rows, stack, anyone)
    path = f"/shops/{SHOP + 1}/reviews"
    made = user(FIRST_USER)("POST", path, {"score": 5, "body": "The first."})
    assert made.status == 201
    wait_until(
        "the list is made",
        lambda: (
            [i["id"] for i in pages(anyone, f"{path}/recommended?limit=9")] == [made.json["id"]]
        ),
        PATIENCE_S,
    )
    missing = anyone("GET", f"/shops/{SHOP + 2}/reviews/recommended")
    assert (missing.status, problem(missing)) == (404, "not-found")


def test_rankings_are_what_mysql_says(stack: Any, anyone: Client, user: User, rows: Rows) -> None:
    posts = []
    for n in range(4):
        made = user(FIRST_USER + n)("POST", "/posts", POST)
        assert made.status == 201, made.json
        posts.append(int(made.json["id"]))
    counts = list(zip(posts, (2, 4, 2, 1), strict=True))
    like(user, "posts", counts)
    wait_until("the likes are saved", lambda: saved(rows, "post", counts), PATIENCE_S)

    def expected(window: str) -> list[tuple[int, int]]:
        if window == "all":
            found = rows(
                "SELECT like_total, target_id FROM (SELECT like_total, target_id,"
                " target_id AS post_id FROM content_counter WHERE target_type = 'post') AS k"
                f"{LIVE} WHERE like_total > 0 ORDER BY like_total DESC, target_id DESC LIMIT 1000"
            )
        else:
            found = rows(
                f"SELECT SUM(turn) AS likes, post_id FROM ({TURNS}) AS turns{LIVE}"
                " WHERE hour > UNIX_TIMESTAMP(NOW(6)) DIV 3600 - %s"
                " GROUP BY post_id HAVING likes > 0 ORDER BY likes DESC, post_id DESC LIMIT 1000",
                {"day": 24, "week": 168}[window],
            )
        return [(int(likes), post_id) for likes, post_id in found]

    def shown(window: str) -> list[tuple[int, int]]:
        items = pages(anyone, f"/posts/ranking?limit=97&window={window}")
        return [(item["score"], int(item["id"])) for item in items]

    def agrees(window: str) -> bool:
        stack.invoke("RollUpVotes", {})
        stack.invoke("RefreshRankings", {})
        return shown(window) == expected(window)

    for window in ("all", "day", "week"):
        wait_until(
            f"the ranking of {window} is right", functools.partial(agrees, window), PATIENCE_S
        )
        ours = [entry for entry in shown(window) if entry[1] in posts]
        assert ours == [(4, posts[1]), (2, posts[2]), (2, posts[0]), (1, posts[3])]

    first = pages(user(FIRST_USER), "/posts/ranking?limit=100&window=day")
    mine = {int(item["id"]): item["mine"] for item in first if int(item["id"]) in posts}
    assert mine == {post_id: {"liked": True, "collected": False} for post_id in posts}
    assert user(FIRST_USER + 1)("DELETE", f"/posts/{posts[1]}").status == 204
    wait_until("the deleted is not shown", lambda: posts[1] not in {p for _, p in shown("all")})
    refused = anyone("GET", "/posts/ranking?window=year")
    assert (refused.status, problem(refused)) == (400, "invalid-request")

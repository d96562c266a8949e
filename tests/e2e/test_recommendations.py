"""Recommended reviews and rankings of posts on the deployed stack."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from local.stack.stack import Stack
from tests.e2e.client import Client, problem, wait_until

SHOP = 5_700_000
FIRST_USER = 5_700_001
TIMEOUT_S = 120  # many functions start at the same time
POST = {"kind": "note", "title": "Noodles", "body": "Ask for the thick ones.", "images": []}

# The changes of likes by hour; a repeated like changes nothing.
CHANGES = (
    "SELECT target_id AS post_id, version DIV 3600000000 AS hour, change_by"
    " FROM reaction_log WHERE target_type = 'post' AND kind = 'like'"
)
LIVE = (
    " JOIN content AS c ON c.content_type = 'post' AND c.content_id = post_id"
    " AND c.deleted_at IS NULL"
)

Rows = Callable[..., tuple[Any, ...]]
User = Callable[[int], Client]


@pytest.fixture
def shop(rows: Rows, stack: Stack, anonymous: Client) -> int:
    """The id of a shop."""
    return insert_shop(SHOP, rows, stack, anonymous)


def insert_shop(shop_id: int, rows: Rows, stack: Stack, anonymous: Client) -> int:
    """Insert a shop into MySQL, wait until the binlog consumer has read it, and return its id."""
    rows("INSERT IGNORE INTO shop (id, name) VALUES (%s, 'Noodles')", shop_id)
    stack.invoke("FollowBinlog", {})
    wait_until("the shop is readable", lambda: anonymous("GET", f"/shops/{shop_id}").status == 200)
    return shop_id


def pages(client: Client, path: str) -> list[dict[str, Any]]:
    """Return the items of all pages of a list."""
    items: list[dict[str, Any]] = []
    cursor = ""
    while True:
        reply = client("GET", path + cursor)
        assert reply.status == 200, reply.json
        items += reply.json["items"]
        if reply.json["next"] is None:
            return items
        cursor = f"&cursor={reply.json['next']}"


def like(user: User, path: str, counts: list[tuple[int, int]]) -> None:
    """Like targets of ``path``; ``counts``: (target id, number of users) of each."""
    for target_id, count in counts:
        for n in range(count):
            reply = user(FIRST_USER + n)("PUT", f"/{path}/{target_id}/likes/me")
            assert reply.status == 200, reply.json


def saved(rows: Rows, target_type: str, counts: list[tuple[int, int]]) -> bool:
    """Return whether MySQL has all likes of ``counts``."""
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
    stack: Any, anonymous: Client, user: User, shop: int, rows: Rows
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
    wait_until("the likes are saved", lambda: saved(rows, "review", counts), TIMEOUT_S)
    assert stack.invoke("RollUpLikes", {})["rolled_up_to"] > 0
    stack.invoke("RefreshRecommendations", {})
    expected = [reviews[n] for n in (1, 3, 4, 0, 2)]

    def shown() -> list[int]:
        return [int(item["id"]) for item in pages(anonymous, path)]

    wait_until("the list is built", lambda: shown() == expected, TIMEOUT_S)
    assert rows("SELECT * FROM stale_list WHERE shop_id = %s", shop) == ()

    user(FIRST_USER)("PUT", f"/reviews/{reviews[2]}/likes/me")
    last = pages(user(FIRST_USER), path)[-1]
    assert (last["likes"], last["mine"]) == (1, {"liked": True, "collected": False})
    assert user(FIRST_USER + 1)("DELETE", f"/reviews/{reviews[1]}").status == 204
    wait_until("the deleted review is not listed", lambda: shown() == expected[1:])


def test_the_list_of_a_new_shop_is_built_on_demand(
    anonymous: Client, user: User, rows: Rows, stack: Stack
) -> None:
    insert_shop(SHOP + 1, rows, stack, anonymous)
    path = f"/shops/{SHOP + 1}/reviews"
    made = user(FIRST_USER)("POST", path, {"score": 5, "body": "The first."})
    assert made.status == 201
    wait_until(
        "the list is built",
        lambda: (
            [i["id"] for i in pages(anonymous, f"{path}/recommended?limit=9")] == [made.json["id"]]
        ),
        TIMEOUT_S,
    )
    missing = anonymous("GET", f"/shops/{SHOP + 2}/reviews/recommended")
    assert (missing.status, problem(missing)) == (404, "not-found")


def test_rankings_equal_those_computed_in_mysql(
    stack: Any, anonymous: Client, user: User, rows: Rows
) -> None:
    posts = []
    for n in range(4):
        made = user(FIRST_USER + n)("POST", "/posts", POST)
        assert made.status == 201, made.json
        posts.append(int(made.json["id"]))
    counts = list(zip(posts, (2, 4, 2, 1), strict=True))
    like(user, "posts", counts)
    wait_until("the likes are saved", lambda: saved(rows, "post", counts), TIMEOUT_S)

    def expected(window: str) -> list[tuple[int, int]]:
        if window == "all":
            result = rows(
                "SELECT total, post_id FROM (SELECT total, target_id AS post_id FROM counter"
                " WHERE target_type = 'post' AND kind = 'like') AS k"
                f"{LIVE} WHERE total > 0 ORDER BY total DESC, post_id DESC LIMIT 1000"
            )
        else:
            result = rows(
                f"SELECT SUM(change_by) AS likes, post_id FROM ({CHANGES}) AS changes{LIVE}"
                " WHERE hour > UNIX_TIMESTAMP(NOW(6)) DIV 3600 - %s"
                " GROUP BY post_id HAVING likes > 0 ORDER BY likes DESC, post_id DESC LIMIT 1000",
                {"day": 24, "week": 168}[window],
            )
        return [(int(likes), post_id) for likes, post_id in result]

    def shown(window: str) -> list[tuple[int, int]]:
        items = pages(anonymous, f"/posts/ranking?limit=97&window={window}")
        return [(item["score"], int(item["id"])) for item in items]

    def read_right(window: str) -> list[tuple[int, int]] | None:
        """Return the ranking if it is right; another process may still serve an older one."""
        stack.invoke("RollUpLikes", {})
        stack.invoke("RefreshRankings", {})
        return entries if (entries := shown(window)) == expected(window) else None

    for window in ("all", "day", "week"):
        ranking = wait_until(
            f"the ranking of {window} is right", functools.partial(read_right, window), TIMEOUT_S
        )
        own = [entry for entry in ranking if entry[1] in posts]
        assert own == [(4, posts[1]), (2, posts[2]), (2, posts[0]), (1, posts[3])]
    hot = [post_id for _, post_id in shown("hot") if post_id in posts]
    assert hot[0] == posts[1]
    assert sorted(hot) == posts

    first = pages(user(FIRST_USER), "/posts/ranking?limit=100&window=day")
    mine = {int(item["id"]): item["mine"] for item in first if int(item["id"]) in posts}
    assert mine == {post_id: {"liked": True, "collected": False} for post_id in posts}
    assert user(FIRST_USER + 1)("DELETE", f"/posts/{posts[1]}").status == 204
    wait_until(
        "the deleted post is not listed", lambda: posts[1] not in {p for _, p in shown("all")}
    )
    refused = anonymous("GET", "/posts/ranking?window=year")
    assert (refused.status, problem(refused)) == (400, "invalid-request")

"""Posts, comments and reviews on the deployed stack."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from local.stack.stack import Stack
from tests.e2e.client import Client, problem, wait_until

POST = {"kind": "note", "title": "Noodles", "body": "Ask for the thick ones.", "images": []}
AUTHOR, READER, OTHER, TWICE = 5_500_001, 5_500_002, 5_500_003, 5_500_004
SHOP = 5_500_100


@pytest.fixture
def shop(rows: Callable[..., Any], stack: Stack, anonymous: Client) -> int:
    rows("INSERT IGNORE INTO shop (id, name) VALUES (%s, 'Noodles')", SHOP)
    stack.invoke("FollowBinlog", {})
    wait_until("the shop is readable", lambda: anonymous("GET", f"/shops/{SHOP}").status == 200)
    return SHOP


def write(client: Client, path: str, body: Any) -> str:
    reply = client("POST", path, body)
    assert reply.status == 201, reply.json
    return str(reply.json["id"])


def wait_until_gone(anonymous: Client, path: str) -> None:
    """Wait for a 410. Each process may serve anonymous callers the text for a second more
    (docs/limits.md)."""

    def read_slug() -> str | None:
        reply = anonymous("GET", path)
        return problem(reply) if reply.status == 410 else None

    assert wait_until(f"{path} is gone", read_slug, timeout_s=5) == "gone"


def test_a_post_is_written_read_listed_commented_liked_and_deleted(
    anonymous: Client, user: Callable[[int], Client], rows: Callable[..., Any]
) -> None:
    author, reader = user(AUTHOR), user(READER)
    written = author("POST", "/posts", POST | {"images": ["https://pics.example/n.jpg"]})
    assert written.status == 201
    path = f"/posts/{written.json['id']}"
    shown = anonymous("GET", path).json
    assert shown == written.json | {
        "likes_at": shown["likes_at"],
        "collects_at": shown["collects_at"],
        "reactions": shown["reactions"],
        "viewers": 1,
        "mine": None,
        "likers": [],
    }
    assert [i["id"] for i in anonymous("GET", f"/users/{AUTHOR}/posts").json["items"]][:1] == [
        written.json["id"]
    ]

    comments = [write(reader, f"{path}/comments", {"body": f"comment {n}"}) for n in range(3)]
    assert reader("PUT", f"{path}/likes/me").json["likes"] == 1
    assert reader("PUT", f"/comments/{comments[0]}/likes/me").json["likes"] == 1
    read = reader("GET", path).json
    assert (read["likes"], read["comments"], read["viewers"]) == (1, 3, 2)
    assert read["mine"] == {"liked": True, "collected": False}
    first = anonymous("GET", f"{path}/comments?limit=2").json
    rest = anonymous("GET", f"{path}/comments?limit=2&cursor={first['next']}").json
    assert [i["id"] for i in first["items"] + rest["items"]] == comments[::-1]
    assert rest["next"] is None
    assert [i["likes"] for i in rest["items"]] == [1]

    assert reader("DELETE", f"/comments/{comments[1]}").status == 204
    wait_until_gone(anonymous, f"/comments/{comments[1]}")
    assert anonymous("GET", path).json["comments"] == 2

    refused = reader("DELETE", path)
    assert (refused.status, problem(refused)) == (403, "forbidden")
    assert anonymous("DELETE", path).status == 401
    assert author("DELETE", path).status == 204
    wait_until_gone(anonymous, path)
    wait_until_gone(anonymous, f"{path}/comments")
    for reply in (
        author("DELETE", path),
        reader("POST", f"{path}/comments", {"body": "too late"}),
        reader("PUT", f"{path}/likes/me"),
        user(OTHER)("PUT", f"{path}/likes/me"),
        user(OTHER)("PUT", f"{path}/collects/me"),
    ):
        assert (reply.status, problem(reply)) == (410, "gone")
    assert anonymous("GET", f"/users/{AUTHOR}/posts").json["items"] == []
    post_id = written.json["id"]
    [(comments,)] = rows(
        "SELECT total FROM counter"
        " WHERE target_type = 'post' AND target_id = %s AND kind = 'comment'",
        post_id,
    )
    assert comments == 2, "comments of a deleted post stay counted"
    assert rows("SELECT posts_total FROM user_counter WHERE user_id = %s", AUTHOR) == ((0,),)
    wait_until(
        "the like is stored",
        lambda: rows("SELECT 1 FROM reaction WHERE target_id = %s", post_id),
    )


def test_a_review_is_written_listed_and_deleted(
    anonymous: Client, user: Callable[[int], Client], shop: int
) -> None:
    author = user(AUTHOR)
    path = f"/shops/{shop}/reviews"
    first = write(author, path, {"score": 5, "body": "Quick and warm."})
    second = write(user(READER), path, {"score": 2, "body": "Warm, not quick."})
    listed = anonymous("GET", path).json["items"]
    assert [(i["id"], i["score"]) for i in listed[:2]] == [(second, 2), (first, 5)]
    assert user(READER)("DELETE", f"/reviews/{first}").status == 403
    assert author("DELETE", f"/reviews/{first}").status == 204
    wait_until_gone(anonymous, f"/reviews/{first}")
    assert first not in [i["id"] for i in anonymous("GET", path).json["items"]]
    assert anonymous("GET", "/shops/5500199/reviews").status == 404


def test_concurrent_posts_with_one_idempotency_key_create_one_post(
    user: Callable[[int], Client], rows: Callable[..., Any]
) -> None:
    client, key = user(TWICE), {"idempotency-key": "9d6a-6f0f"}
    with ThreadPoolExecutor(5) as tries:
        replies = list(tries.map(lambda _: client("POST", "/posts", POST, key), range(10)))
    assert {reply.status for reply in replies} == {201}
    assert len({reply.json["id"] for reply in replies}) == 1
    other = client("POST", "/posts", POST | {"title": "Soup"}, key)
    assert (other.status, problem(other)) == (409, "idempotency-key-reused")
    assert rows("SELECT COUNT(*) FROM content WHERE author_id = %s", TWICE) == ((1,),)
    assert rows("SELECT posts_total FROM user_counter WHERE user_id = %s", TWICE) == ((1,),)


def test_an_invalid_post_is_refused_and_not_stored(
    user: Callable[[int], Client], rows: Callable[..., Any]
) -> None:
    client = user(OTHER)
    before = rows("SELECT COUNT(*) FROM content WHERE author_id = %s", OTHER)
    for body in (
        POST | {"title": "\u200b"},
        POST | {"body": "a\x00"},
        POST | {"images": ["http://pics.example/n.jpg"]},
        POST | {"images": ["https://pics.example/n.jpg"] * 10},
        POST | {"kind": "essay"},
        POST | {"likes": 7},
        b'{"kind": "note", "title": "\\ud800", "body": "b"}',
        b"[" * 30_000,
        POST | {"body": "a" * 70_000},
    ):
        refused = client("POST", "/posts", body, {"content-type": "application/json"})
        assert (refused.status, problem(refused)) == (400, "invalid-request")
    assert rows("SELECT COUNT(*) FROM content WHERE author_id = %s", OTHER) == before


def test_an_announced_refresh_updates_redis_after_a_crash(
    anonymous: Client, user: Callable[[int], Client], rows: Callable[..., Any]
) -> None:
    """As if a deletion had crashed after the commit: the refresh that it announced comes later."""
    post_id = write(user(OTHER), "/posts", POST)
    path = f"/posts/{post_id}"
    assert anonymous("GET", path).status == 200
    rows("UPDATE content SET deleted_at = UTC_TIMESTAMP(6) WHERE content_id = %s", post_id)
    rows(
        "UPDATE user_counter SET posts_total = posts_total - 1, version = version + 1"
        " WHERE user_id = %s",
        OTHER,
    )
    assert anonymous("GET", path).status == 200, "Redis is stale"
    wait_until("the refresh is done", lambda: anonymous("GET", path).status == 410, timeout_s=90)
    assert user(READER)("PUT", f"{path}/likes/me").status == 410

"""Likes on the deployed stack: HTTP, Redis, queue, MySQL, and back."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from local.stack.stack import Stack
from tests.e2e.client import Client, problem, read_like_totals, wait_until


def test_a_like_is_stored_in_mysql_and_listed(
    anonymous: Client,
    user: Callable[[int], Client],
    add: Callable[..., int],
    rows: Callable[..., Any],
) -> None:
    post = add()
    first = user(1)("PUT", f"/posts/{post}/likes/me")
    at = first.json["likes_at"]
    liked = {"liked": True, "likes": 1, "likes_at": at, "changed": True, "exact": True}
    assert (first.status, first.json) == (200, liked)
    again = user(1)("PUT", f"/posts/{post}/likes/me")
    assert again.json == liked | {"changed": False, "likes_at": again.json["likes_at"]}
    second = user(2)("PUT", f"/posts/{post}/likes/me").json
    assert second["likes"] == 2
    last = user(1)("DELETE", f"/posts/{post}/likes/me").json
    assert last == liked | {"liked": False, "likes_at": last["likes_at"]}
    assert at <= again.json["likes_at"] < second["likes_at"] < last["likes_at"]
    wait_until("MySQL has one like", lambda: read_like_totals(rows, post) == (1, 1))

    def read_likers() -> Any:
        return anonymous("GET", f"/posts/{post}/likers").json

    wait_until(  # a list shows what was acknowledged, which follows the commit
        "the like is listed", lambda: [i["user_id"] for i in read_likers()["items"]] == ["2"]
    )
    assert read_likers()["next"] is None


def test_concurrent_likes_of_one_user_are_counted_once(
    user: Callable[[int], Client], add: Callable[..., int], rows: Callable[..., Any]
) -> None:
    post, client = add(), user(3)
    with ThreadPoolExecutor(6) as tabs:
        replies = list(tabs.map(lambda _: client("PUT", f"/posts/{post}/likes/me"), range(20)))
    assert {reply.status for reply in replies} == {200}
    assert sum(reply.json["changed"] for reply in replies) == 1
    assert {reply.json["likes"] for reply in replies} == {1}
    wait_until("MySQL has one like", lambda: read_like_totals(rows, post) == (1, 1))


def test_posts_comments_and_reviews_can_be_liked_and_posts_collected(
    user: Callable[[int], Client], add: Callable[..., int]
) -> None:
    for kind, path in (("post", "posts"), ("comment", "comments"), ("review", "reviews")):
        target = add(kind)
        reply = user(4)("PUT", f"/{path}/{target}/likes/me")
        assert (reply.status, reply.json["likes"]) == (200, 1)
    post = add()
    reply = user(4)("PUT", f"/posts/{post}/collects/me")
    assert reply.json == {
        "collected": True,
        "collects": 1,
        "collects_at": reply.json["collects_at"],
        "changed": True,
        "exact": True,
    }
    assert user(4)("DELETE", f"/posts/{post}/collects/me").json["collects"] == 0


def test_own_likes_are_private_and_listed_newest_first_in_pages(
    anonymous: Client,
    user: Callable[[int], Client],
    add: Callable[..., int],
    rows: Callable[..., Any],
) -> None:
    client, posts = user(8_900_001), [add() for _ in range(5)]
    for post in posts:
        client("PUT", f"/posts/{post}/likes/me")
    marks = ",".join(map(str, posts))
    wait_until(
        "all five are stored",
        lambda: rows(f"SELECT COUNT(*) FROM reaction WHERE target_id IN ({marks})")[0][0] == 5,
    )

    def listed() -> list[str]:
        return [item["id"] for item in client.plaza.users.list_my_likes(limit=2)]

    newest_first = [str(post) for post in reversed(posts)]
    wait_until("the list shows them", lambda: listed() == newest_first)
    refused = anonymous("GET", "/users/me/likes")
    assert (refused.status, problem(refused)) == (401, "unauthenticated")


def test_a_query_returns_a_hundred_targets(
    anonymous: Client, user: Callable[[int], Client], add: Callable[..., int]
) -> None:
    posts = [add() for _ in range(99)]
    comment = add("comment")
    user(5)("PUT", f"/posts/{posts[0]}/likes/me")
    body = {"targets": [{"type": "post", "id": str(p)} for p in posts]}
    body["targets"].append({"type": "comment", "id": str(comment)})
    reply = user(5)("POST", "/reactions/query", body)
    assert reply.status == 200
    assert reply.json["exact"] is True
    assert reply.json["items"][0] == {
        "type": "post",
        "id": str(posts[0]),
        "likes": 1,
        "likes_at": reply.json["items"][0]["likes_at"],
        "collects": 0,
        "collects_at": reply.json["items"][0]["collects_at"],
        "mine": {"liked": True, "collected": False},
        "reactions": reply.json["items"][0]["reactions"],
    }
    assert reply.json["items"][99] == {
        "type": "comment",
        "id": str(comment),
        "likes": 0,
        "likes_at": reply.json["items"][99]["likes_at"],
        "collects": 0,
        "collects_at": reply.json["items"][99]["collects_at"],
        "mine": {"liked": False, "collected": False},
        "reactions": reply.json["items"][99]["reactions"],
    }
    assert [i["reactions"]["like"]["total"] for i in reply.json["items"][::99]] == [1, 0]
    assert anonymous("POST", "/reactions/query", body).json["items"][0]["mine"] is None


def test_an_unknown_target_is_404_and_a_deleted_one_410(
    anonymous: Client, user: Callable[[int], Client], add: Callable[..., int]
) -> None:
    deleted = add(deleted=True)
    for _ in range(2):  # from MySQL, then from the tombstone
        for reply, status, slug in (
            (user(6)("PUT", "/posts/7999999/likes/me"), 404, "not-found"),
            (anonymous("GET", "/posts/7999999/likers"), 404, "not-found"),
            (user(6)("PUT", f"/posts/{deleted}/likes/me"), 410, "gone"),
            (anonymous("GET", f"/posts/{deleted}/likers"), 410, "gone"),
        ):
            assert (reply.status, problem(reply)) == (status, slug)


@pytest.mark.parametrize(
    "post", ["abc", "0", "-1", "01", "1.5", "9223372036854775808", "1%00", "%F0%9F%98%80", "1e3"]
)
def test_an_invalid_id_in_the_path_is_404(user: Callable[[int], Client], post: str) -> None:
    reply = user(6)("PUT", f"/posts/{post}/likes/me")
    assert (reply.status, problem(reply)) == (404, "not-found")


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer x", "Basic dTpw", "Bearer " + "A" * 43, "Bearer " + "é" * 43, "x" * 5000],
)
def test_a_malformed_unknown_or_missing_token_is_401(
    anonymous: Client, add: Callable[..., int], header: str
) -> None:
    post = add()
    for method, path in (("PUT", f"/posts/{post}/likes/me"), ("GET", f"/posts/{post}/likers")):
        reply = anonymous(
            method, path, headers={"authorization": header.encode().decode("latin-1")}
        )
        assert (reply.status, problem(reply)) == (401, "unauthenticated")
    assert anonymous("PUT", f"/posts/{post}/likes/me").status == 401


def test_an_expired_token_is_401(
    base_url: str, add: Callable[..., int], rows: Callable[..., Any], sign_in: Callable[..., str]
) -> None:
    token = sign_in(8_900_002)
    rows(
        "UPDATE session SET expires_at = NOW(6) - INTERVAL 1 SECOND"
        " ORDER BY created_at DESC LIMIT 1"
    )
    reply = Client(base_url, token)("PUT", f"/posts/{add()}/likes/me")
    assert (reply.status, problem(reply)) == (401, "unauthenticated")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"{", "body"),
        (b"\xff\xfe", "body"),
        (b"[]", "body"),
        (b"null", "body"),
        ({}, "targets"),
        ({"targets": []}, "targets"),
        ({"targets": [{"type": "post", "id": "1"}], "extra": 1}, "extra"),
        ({"targets": [{"type": "shop", "id": "1"}]}, "type"),
        ({"targets": [{"type": "post", "id": 1}]}, "id"),
        ({"targets": [{"type": "post", "id": "1"}] * 101}, "targets"),
        ({"targets": [{"type": "post", "id": "1", "x": "y" * 70_000}]}, "body"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_invalid_body_is_400_and_names_the_field(
    anonymous: Client, body: Any, field: str
) -> None:
    reply = anonymous("POST", "/reactions/query", body)
    assert (reply.status, problem(reply)) == (400, "invalid-request")
    assert field in json.dumps(reply.json.get("errors") or reply.json["detail"])


@pytest.mark.parametrize(
    "content_type", ["text/plain", "multipart/form-data", "application/x-www-form-urlencoded"]
)
def test_a_content_type_other_than_json_is_400(anonymous: Client, content_type: str) -> None:
    body = json.dumps({"targets": [{"type": "post", "id": "1"}]}).encode()
    reply = anonymous("POST", "/reactions/query", body, {"content-type": content_type})
    assert (reply.status, problem(reply)) == (400, "invalid-request")
    assert "content-type" in reply.json["detail"]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=101", "limit=x", "cursor=!", "cursor=WzFd", "cursor=", "order=best"]
)
def test_an_invalid_query_is_400(anonymous: Client, add: Callable[..., int], query: str) -> None:
    reply = anonymous("GET", f"/posts/{add()}/likers?{query}")
    assert (reply.status, problem(reply)) == (400, "invalid-request")


def test_a_wrong_method_is_405_and_an_unknown_path_404(anonymous: Client) -> None:
    wrong = anonymous("POST", "/posts/1/likes/me")
    assert (wrong.status, problem(wrong)) == (405, "method-not-allowed")
    assert wrong.headers["allow"] == "DELETE, PUT"
    unknown = anonymous("GET", "/nothing/here")
    assert (unknown.status, problem(unknown)) == (404, "not-found")


@pytest.mark.usefixtures("dead_reactions")
def test_an_unreadable_message_is_dead_lettered_and_the_rest_of_its_batch_is_stored(
    stack: Stack, user: Callable[[int], Client], add: Callable[..., int], rows: Callable[..., Any]
) -> None:
    def is_saved(post: int) -> bool:
        return read_like_totals(rows, post) == (1, 1)

    sqs = stack.connect("sqs")
    dead = stack.queues["reactions_dlq"]
    posts = [add() for _ in range(3)]
    events = [
        {
            "protocol": 2,
            "target_type": "post",
            "target_id": post,
            "kind": "like",
            "actor_id": 7,
            "state": 1,
            "version": 1_700_000_000_000_000 + post,
        }
        for post in posts
    ]
    injection = events[0] | {"actor_id": "x'; DROP TABLE"}
    bodies = ["{", *map(json.dumps, [*events, injection])]
    sqs.send_message_batch(
        QueueUrl=stack.queues["reactions"],
        Entries=[{"Id": str(i), "MessageBody": body} for i, body in enumerate(bodies)],
    )
    for post in posts:
        wait_until("the readable messages are stored", functools.partial(is_saved, post))
    causes: dict[str, str] = {}

    def receive_both() -> bool:
        response = sqs.receive_message(
            QueueUrl=dead, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        )
        for message in response.get("Messages", []):
            causes[message["Body"]] = message["MessageAttributes"]["cause"]["StringValue"]
            sqs.delete_message(QueueUrl=dead, ReceiptHandle=message["ReceiptHandle"])
        return len(causes) >= 2

    wait_until("both unreadable messages are in the DLQ", receive_both)
    assert set(causes) == {bodies[0], bodies[-1]}
    assert "actor_id" in causes[bodies[-1]]


def test_health_reports_each_dependency(
    anonymous: Client, base_url: str, sign_in: Callable[..., str]
) -> None:
    admin = Client(base_url, sign_in(38, role="admin"))
    assert anonymous("GET", "/health").json == {"status": "up"}
    assert anonymous("GET", "/ops/health").status == 401
    up = {"status": "up", "redis": "up", "mysql": "up", "queue": "up"}
    wait_until("all dependencies are up", lambda: admin("GET", "/ops/health").json == up, 10)

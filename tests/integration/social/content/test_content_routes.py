"""The routes of posts, comments and reviews: create, read, list, delete."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plaza.core.reactions import COLLECT, LIKE, Target, react
from plaza.infra.derived import ids
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.runtime.process import clear_caches
from tests.support import content_api
from tests.support.content_api import (
    COMMENT,
    POST,
    REVIEW,
    SHOP,
    as_another_process,
    ask,
    check_counters,
    comment,
    post,
    review,
)
from tests.support.keyspace import delete_keys, find_keys
from tests.support.plaza import World
from tests.support.stores import reactions_of, without_tokens

pytestmark = pytest.mark.usefixtures("world")


# ---------------------------------------------------------------- creating and reading


def test_a_created_post_is_read_back_with_all_fields() -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    request = POST | {"kind": "blog", "images": ["https://pics.example/a.png"], "title": "漢字 🍜"}
    written = ask("POST", "/posts", request)
    assert written.status == 201
    item = dict(written.body)
    created_at = datetime.fromisoformat(item.pop("created_at"))
    assert before < created_at < datetime.now(UTC) + timedelta(seconds=1)
    assert written.body["created_at"].endswith("Z")
    assert int(item.pop("id")) > 2**53
    assert item == request | {
        "edited_at": None,
        "hidden": False,
        "author": {"id": "7", "nickname": "user7", "avatar": None},
        "likes": 0,
        "likes_at": None,
        "collects": 0,
        "collects_at": None,
        "comments": 0,
        "viewers": 0,
        "mine": {"liked": False, "collected": False},
        "reactions": reactions_of("post", at=None),
        "exact": True,
    }
    path = f"/posts/{written.body['id']}"
    for forget in (lambda: None, as_another_process, lambda: redis.execute("FLUSHALL")):
        forget()
        as_another_process()
        read = ask("GET", path, user=None)
        assert read.status == 200
        assert None not in (read.body["likes_at"], read.body["collects_at"])
        unknown = {kind: {**count, "mine": None} for kind, count in item["reactions"].items()}
        seen: dict[str, Any] = {"mine": None, "viewers": 1, "likers": [], "reactions": unknown}
        assert without_tokens(read.body) == without_tokens(written.body | seen)


def test_a_created_comment_is_read_back() -> None:
    post_id = post()
    written = ask("POST", f"/posts/{post_id}/comments", COMMENT, user=8)
    assert written.status == 201
    as_another_process()
    read = ask("GET", f"/comments/{written.body['id']}", user=8)
    assert without_tokens(read.body) == without_tokens(written.body)
    assert {k: v for k, v in written.body.items() if k not in ("id", "created_at")} == {
        "post_id": post_id,
        "body": COMMENT["body"],
        "hidden": False,
        "author": {"id": "8", "nickname": "user8", "avatar": None},
        "likes": 0,
        "likes_at": None,
        "collects": 0,
        "collects_at": None,
        "mine": {"liked": False, "collected": False},
        "reactions": reactions_of("comment", at=None),
        "exact": True,
    }
    assert ask("GET", f"/posts/{post_id}").body["comments"] == 1


def test_a_created_review_is_read_back() -> None:
    written = ask("POST", f"/shops/{SHOP}/reviews", REVIEW)
    assert written.status == 201
    as_another_process()
    read = ask("GET", f"/reviews/{written.body['id']}")
    assert without_tokens(read.body) == without_tokens(written.body)
    assert (read.body["shop_id"], read.body["score"]) == (str(SHOP), 4)
    assert "comments" not in read.body


def test_mine_is_the_state_of_the_caller(world: World) -> None:
    post_id = post()
    target = Target("post", int(post_id))
    react.react(LIKE, target, 8, True)
    react.react(COLLECT, target, 8, True)
    comment(post_id)
    mine = {"liked": True, "collected": True}
    for user, expected in ((8, mine), (7, {"liked": False, "collected": False}), (None, None)):
        read = ask("GET", f"/posts/{post_id}", user=user).body
        assert (read["likes"], read["collects"], read["comments"]) == (1, 1, 1)
        assert read["mine"] == expected


def test_a_viewer_is_counted_once() -> None:
    post_id = post()
    for _ in range(3):
        assert ask("GET", f"/posts/{post_id}", user=7).body["viewers"] == 1
    assert ask("GET", f"/posts/{post_id}", user=8, ip="203.0.113.7").body["viewers"] == 2
    assert ask("GET", f"/posts/{post_id}", user=None, ip="198.51.100.1").body["viewers"] == 3
    assert ask("GET", f"/posts/{post_id}", user=None, ip="198.51.100.1").body["viewers"] == 3
    for number in range(600):
        agent = f"a browser {number}"
        read = ask("GET", f"/posts/{post_id}", user=None, ip="198.51.100.1", agent=agent)
    assert read.body["viewers"] == 3, "a header does not make a viewer"
    clear_caches()  # the number of viewers of a hot post is up to 1 s old
    assert ask("GET", f"/posts/{post_id}", user=None, ip="198.51.100.2").body["viewers"] == 4
    listed = ask("GET", "/users/7/posts", user=None).body["items"]
    assert listed[0]["viewers"] == 4, "a list does not count its reader as a viewer"
    [key] = find_keys("*:viewers")
    assert 89 * 86_400 < redis.execute("TTL", key) <= 90 * 86_400


def test_a_missing_post_counts_no_viewers() -> None:
    assert ask("GET", "/posts/123").status == 404
    assert find_keys("*:viewers") == []


def test_an_author_without_a_user_has_a_placeholder_card() -> None:
    mysql.write("DELETE FROM user")
    assert ask("GET", f"/posts/{post()}").body["author"] == {
        "id": "7",
        "nickname": "unknown user",
        "avatar": None,
    }


def test_rows_without_text_can_be_read(world: World) -> None:
    for target in (Target("post", 11), Target("comment", 21), Target("review", 31)):
        world.add(target)
    assert ask("GET", "/posts/11").body["body"] == ""
    assert ask("GET", "/comments/21").status == 200
    assert ask("GET", "/reviews/31").status == 200


# ---------------------------------------------------------------- deleting


@pytest.mark.parametrize("resource", ["posts", "comments", "reviews"])
def test_only_the_author_deletes_a_text_and_then_every_route_returns_410(
    resource: str, world: World
) -> None:
    first = post(8)
    item = {"posts": post, "comments": lambda user: comment(first, user), "reviews": review}
    item_id = item[resource](7)
    path = f"/{resource}/{item_id}"
    assert ask("GET", path).status == 200
    target = Target(resource.removesuffix("s"), int(item_id))
    assert react.react(LIKE, target, 8, True).total == 1, "the target is loaded"

    assert ask("DELETE", path, user=None).status == 401
    refused = ask("DELETE", path, user=8)
    assert (refused.status, refused.slug) == (403, "forbidden")
    assert ask("GET", path).status == 200

    completed = ask("DELETE", path)
    assert (completed.status, completed.body) == (204, None)
    for user in (7, 8, None):
        read = ask("GET", path, user=user)
        assert (read.status, read.slug) == (410, "gone")
    for user in (7, 8):
        assert ask("DELETE", path, user=user).status == 410
    likes = ask("PUT", f"{path}/likes/me", user=9, folder="api/reactions")
    assert (likes.status, likes.slug) == (410, "gone")
    for forget in (as_another_process, lambda: redis.execute("FLUSHALL")):
        forget()
        as_another_process()
        assert ask("GET", path).status == 410
        assert ask("PUT", f"{path}/likes/me", user=9, folder="api/reactions").status == 410
    world.queues.drain()
    assert ask("GET", path).status == 410
    check_counters()
    received = mysql.fetch_all("SELECT likes_received_total FROM user_counter WHERE user_id = 7")
    assert received == [(1,)], "likes of a deleted text stay counted"


def test_a_deleted_post_accepts_and_lists_no_comments() -> None:
    post_id = post()
    comment_id = comment(post_id)
    ask("DELETE", f"/posts/{post_id}")
    for is_new_process in (False, True):
        if is_new_process:
            as_another_process()
        assert ask("GET", f"/posts/{post_id}/comments").status == 410
        assert ask("POST", f"/posts/{post_id}/comments", COMMENT).status == 410
    assert ask("GET", f"/comments/{comment_id}").status == 200, "the comment itself is not deleted"
    assert ask("DELETE", f"/comments/{comment_id}", user=8).status == 204
    check_counters()


def test_a_deleted_comment_is_not_counted() -> None:
    post_id = post()
    first, second = comment(post_id), comment(post_id)
    assert ask("DELETE", f"/comments/{first}", user=8).status == 204
    assert ask("GET", f"/posts/{post_id}").body["comments"] == 1
    listed = ask("GET", f"/posts/{post_id}/comments").body["items"]
    assert [item["id"] for item in listed] == [second]
    check_counters()


# ---------------------------------------------------------------- missing resources


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/posts/{id}"),
        ("DELETE", "/posts/{id}"),
        ("GET", "/users/{id}/posts"),
        ("POST", "/posts/{id}/comments"),
        ("GET", "/posts/{id}/comments"),
        ("GET", "/comments/{id}"),
        ("DELETE", "/comments/{id}"),
        ("POST", "/shops/{id}/reviews"),
        ("GET", "/shops/{id}/reviews"),
        ("GET", "/reviews/{id}"),
        ("DELETE", "/reviews/{id}"),
    ],
)
@pytest.mark.parametrize("name", ["999", str(2**63 - 1), str(2**63), "0", "-1", "07", "x", "1e3"])
def test_a_missing_resource_is_a_404(method: str, path: str, name: str, world: World) -> None:
    body = REVIEW if "reviews" in path else COMMENT
    reply = ask(method, path.format(id=name), body if method == "POST" else None)
    assert (reply.status, reply.slug) == (404, "not-found")
    announced = set(world.queues.messages) - {"shops"}  # the filter of shops may be requested
    assert not announced, "a refused write is not announced"
    assert mysql.fetch_all("SELECT COUNT(*) FROM content") == [(0,)]


def test_repeated_reads_of_a_missing_post_take_one_statement() -> None:
    ask("GET", "/posts/999")
    as_another_process()
    with content_api.counting_work() as work:
        for _ in range(5):
            assert ask("GET", "/posts/999").status == 404
    assert work.statements == 0


def test_a_shop_is_read_once() -> None:
    ask("GET", f"/shops/{SHOP}/reviews")
    with content_api.counting_work() as work:
        ask("GET", f"/shops/{SHOP}/reviews")
    assert work.statements == 0


# ---------------------------------------------------------------- invalid requests

LONG = "a" * 10_001
URL = "https://pics.example/"
BAD_POSTS: list[tuple[Any, str]] = [
    ({}, "body.kind"),
    ([], "body"),
    ("null", "body"),
    ("7", "body"),
    ('"post"', "body"),
    ("{", "body"),
    ('{"kind": "note"} x', "body"),
    ("[" * 30_000, "body"),
    ('{"kind": "note", "title": ' + "[" * 900 + "]" * 900 + ', "body": "b"}', "body.title"),
    ('{"kind": "note", "title": ' + '{"a":' * 30_000 + "1" + "}" * 30_000 + "}", "body"),
    (POST | {"kind": "essay"}, "body.kind"),
    (POST | {"kind": "NOTE"}, "body.kind"),
    (POST | {"kind": None}, "body.kind"),
    (POST | {"kind": ["note"]}, "body.kind"),
    (POST | {"title": ""}, "body.title"),
    (POST | {"title": " \t\u200b"}, "body.title"),
    (POST | {"title": "\u200b\u200d\ufeff\u3164"}, "body.title"),
    (POST | {"title": "a\nb"}, "body.title"),
    (POST | {"title": "\x00"}, "body.title"),
    (POST | {"title": "a" * 201}, "body.title"),
    (POST | {"title": 7}, "body.title"),
    (POST | {"title": {"a": 1}}, "body.title"),
    (POST | {"title": None}, "body.title"),
    (POST | {"body": ""}, "body.body"),
    (POST | {"body": "\u2003\n\n\u00a0"}, "body.body"),
    (POST | {"body": "a\x00b"}, "body.body"),
    (POST | {"body": "a\x1b[31mb"}, "body.body"),
    (POST | {"body": LONG}, "body.body"),
    (POST | {"body": ["a"]}, "body.body"),
    (json.dumps(POST).replace("Noodles", "\\ud83d"), "body"),
    (json.dumps(POST | {"images": [URL]}).replace("pics", "\\ud800"), "body"),
    (json.dumps(POST | {"\ud800": 1}), "body"),
    (POST | {"images": None}, "body.images"),
    (POST | {"images": URL}, "body.images"),
    (POST | {"images": {"0": URL}}, "body.images"),
    (POST | {"images": [URL] * 10}, "body.images"),
    (POST | {"images": [7]}, "body.images.0"),
    (POST | {"images": [URL, "http://pics.example/"]}, "body.images.1"),
    (POST | {"images": ["javascript:alert(1)"]}, "body.images.0"),
    (POST | {"images": ["https://u:p@pics.example/"]}, "body.images.0"),
    (POST | {"images": [URL + "é"]}, "body.images.0"),
    (POST | {"images": [URL + "\n"]}, "body.images.0"),
    (POST | {"images": [URL + "a" * 492]}, "body.images.0"),
    (POST | {"author_id": 8}, "body.author_id"),
    (POST | {"id": "11"}, "body.id"),
    (POST | {"likes": 1000}, "body.likes"),
    (POST | {"created_at": "2020-01-01T00:00:00Z"}, "body.created_at"),
    (POST | {"body": "é" * 10_000, "images": [URL + "a" * 400] * 9, "x": "a" * 50_000}, "body"),
]


@pytest.mark.parametrize(("body", "field"), BAD_POSTS, ids=lambda v: str(v)[:50])
def test_an_invalid_post_is_a_400_that_names_the_field(body: Any, field: str, world: World) -> None:
    reply = ask("POST", "/posts", body)
    assert (reply.status, reply.slug) == (400, "invalid-request")
    fields = [error["field"] for error in reply.body.get("errors", [])] or [reply.body["detail"]]
    assert any(name.startswith(field) for name in fields), fields
    assert world.queues.messages == {}
    assert mysql.fetch_all("SELECT COUNT(*) FROM content") == [(0,)]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "body.body"),
        ({"body": "a" * 2_001}, "body.body"),
        ({"body": "\u200b"}, "body.body"),
        ({"body": "a", "score": 3}, "body.score"),
        ({"body": "a", "post_id": "1"}, "body.post_id"),
    ],
    ids=str,
)
def test_an_invalid_comment_is_a_400(body: Any, field: str) -> None:
    reply = ask("POST", f"/posts/{post()}/comments", body)
    assert (reply.status, reply.body["errors"][0]["field"]) == (400, field)


@pytest.mark.parametrize(
    "score", [0, 6, -1, 1.5, 4.5, "4", True, None, [4], "NaN", 10**30], ids=repr
)
def test_a_score_outside_of_1_to_5_is_a_400(score: Any) -> None:
    reply = ask("POST", f"/shops/{SHOP}/reviews", REVIEW | {"score": score})
    assert (reply.status, reply.body["errors"][0]["field"]) == (400, "body.score")


@pytest.mark.parametrize("score", ["NaN", "Infinity", "1e400", "1" * 5_000])
def test_a_score_that_is_not_finite_is_a_400(score: str) -> None:
    body = '{"body": "a", "score": ' + score + "}"
    assert ask("POST", f"/shops/{SHOP}/reviews", body).status == 400


def test_texts_of_maximum_length_are_stored_completely() -> None:
    url = URL + "a" * (512 - len(URL))
    request = {"kind": "blog", "title": "漢" * 200, "body": "🍜" * 10_000, "images": [url] * 9}
    written = ask("POST", "/posts", json.dumps(request, ensure_ascii=False))
    assert written.status == 201
    as_another_process()
    redis.execute("FLUSHALL")
    read = ask("GET", f"/posts/{written.body['id']}")
    assert {name: read.body[name] for name in request} == request
    short = {"body": "🍜" * 2_000}
    assert ask("POST", f"/posts/{written.body['id']}/comments", short).body["body"] == short["body"]


def test_creating_a_text_requires_a_session() -> None:
    for path, body in (
        ("/posts", POST),
        (f"/posts/{post()}/comments", COMMENT),
        (f"/shops/{SHOP}/reviews", REVIEW),
    ):
        reply = ask("POST", path, body, user=None)
        assert (reply.status, reply.slug) == (401, "unauthenticated")


def test_a_read_before_the_creation_does_not_hide_the_post(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask("GET", "/posts/4711").status == 404
    like = ask("PUT", "/posts/4711/likes/me", folder="api/reactions")
    assert like.status == 404
    monkeypatch.setattr(ids, "new_id", lambda: 4711)
    assert post() == "4711"
    delete_keys(find_keys("*:text"))
    as_another_process()
    assert ask("GET", "/posts/4711").status == 200
    assert ask("PUT", "/posts/4711/likes/me", folder="api/reactions").status == 200

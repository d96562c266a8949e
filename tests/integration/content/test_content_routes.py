"""Posts, comments and reviews through their function: written, read, listed, deleted."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plaza.infra import ids, mysql, redis
from plaza.reactions import COLLECT, LIKE, Target, react
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

pytestmark = pytest.mark.usefixtures("world")


# ---------------------------------------------------------------- writing and reading


def test_a_post_is_written_and_read_back_whole() -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    said = POST | {"kind": "blog", "images": ["https://pics.example/a.png"], "title": "漢字 🍜"}
    written = ask("POST", "/posts", said)
    assert written.status == 201
    item = dict(written.body)
    created_at = datetime.fromisoformat(item.pop("created_at"))
    assert before < created_at < datetime.now(UTC) + timedelta(seconds=1)
    assert written.body["created_at"].endswith("Z")
    assert int(item.pop("id")) > 2**53
    assert item == said | {
        "author": {"id": "7", "nickname": "user7", "avatar": None},
        "likes": 0,
        "collects": 0,
        "comments": 0,
        "viewers": 0,
        "mine": {"liked": False, "collected": False},
        "exact": True,
    }
    path = f"/posts/{written.body['id']}"
    for forgotten in (lambda: None, as_another_process, lambda: redis.execute("FLUSHALL")):
        forgotten()
        as_another_process()
        read = ask("GET", path, user=None)
        assert read.status == 200
        assert read.body == written.body | {"mine": None, "viewers": 1}


def test_a_comment_is_written_and_read_back() -> None:
    post_id = post()
    written = ask("POST", f"/posts/{post_id}/comments", COMMENT, user=8)
    assert written.status == 201
    as_another_process()
    read = ask("GET", f"/comments/{written.body['id']}", user=8)
    assert read.body == written.body
    assert {k: v for k, v in read.body.items() if k not in ("id", "created_at")} == {
        "post_id": post_id,
        "body": COMMENT["body"],
        "author": {"id": "8", "nickname": "user8", "avatar": None},
        "likes": 0,
        "mine": {"liked": False},
        "exact": True,
    }
    assert ask("GET", f"/posts/{post_id}").body["comments"] == 1


def test_a_review_is_written_and_read_back() -> None:
    written = ask("POST", f"/shops/{SHOP}/reviews", REVIEW)
    assert written.status == 201
    as_another_process()
    read = ask("GET", f"/reviews/{written.body['id']}")
    assert read.body == written.body
    assert (read.body["shop_id"], read.body["score"]) == (str(SHOP), 4)
    assert "comments" not in read.body


def test_counts_and_mine_are_those_of_who_asks(world: World) -> None:
    post_id = post()
    target = Target("post", int(post_id))
    react.react(LIKE, target, 8, True)
    react.react(COLLECT, target, 8, True)
    comment(post_id)
    mine = {"liked": True, "collected": True}
    for user, said in ((8, mine), (7, {"liked": False, "collected": False}), (None, None)):
        read = ask("GET", f"/posts/{post_id}", user=user).body
        assert (read["likes"], read["collects"], read["comments"]) == (1, 1, 1)
        assert read["mine"] == said


def test_viewers_are_people_not_views() -> None:
    post_id = post()
    for _ in range(3):
        assert ask("GET", f"/posts/{post_id}", user=7).body["viewers"] == 1
    assert ask("GET", f"/posts/{post_id}", user=8, ip="203.0.113.7").body["viewers"] == 2
    assert ask("GET", f"/posts/{post_id}", user=None, ip="198.51.100.1").body["viewers"] == 3
    assert ask("GET", f"/posts/{post_id}", user=None, ip="198.51.100.1").body["viewers"] == 3
    for number in range(600):
        agent = f"a browser {number}"
        seen = ask("GET", f"/posts/{post_id}", user=None, ip="198.51.100.1", agent=agent)
    assert seen.body["viewers"] == 3, "a header makes no viewer"
    assert ask("GET", f"/posts/{post_id}", user=None, ip="198.51.100.2").body["viewers"] == 4
    listed = ask("GET", "/users/7/posts", user=None).body["items"]
    assert listed[0]["viewers"] == 4, "a list counts no viewers and shows them"
    [key] = find_keys("*:viewers")
    assert 89 * 86_400 < redis.execute("TTL", key) <= 90 * 86_400


def test_who_looks_for_what_is_not_there_leaves_no_viewers() -> None:
    assert ask("GET", "/posts/123").status == 404
    assert find_keys("*:viewers") == []


def test_an_author_without_a_user_is_somebody() -> None:
    mysql.write("DELETE FROM user")
    assert ask("GET", f"/posts/{post()}").body["author"] == {
        "id": "7",
        "nickname": "somebody",
        "avatar": None,
    }


def test_content_that_is_only_reacted_to_can_be_read(world: World) -> None:
    for target in (Target("post", 11), Target("comment", 21), Target("review", 31)):
        world.add(target)
    assert ask("GET", "/posts/11").body["body"] == ""
    assert ask("GET", "/comments/21").status == 200
    assert ask("GET", "/reviews/31").status == 200


# ---------------------------------------------------------------- deleting


@pytest.mark.parametrize("what", ["posts", "comments", "reviews"])
def test_only_who_wrote_it_deletes_it_and_then_it_is_gone_everywhere(
    what: str, world: World
) -> None:
    first = post(8)
    item = {"posts": post, "comments": lambda user: comment(first, user), "reviews": review}
    item_id = item[what](7)
    path = f"/{what}/{item_id}"
    assert ask("GET", path).status == 200
    target = Target(what.removesuffix("s"), int(item_id))
    assert react.react(LIKE, target, 8, True).total == 1, "it is hot"

    assert ask("DELETE", path, user=None).status == 401
    refused = ask("DELETE", path, user=8)
    assert (refused.status, refused.slug) == (403, "forbidden")
    assert ask("GET", path).status == 200

    done = ask("DELETE", path)
    assert (done.status, done.body) == (204, None)
    for user in (7, 8, None):
        gone = ask("GET", path, user=user)
        assert (gone.status, gone.slug) == (410, "gone")
    for user in (7, 8):
        assert ask("DELETE", path, user=user).status == 410
    likes = ask("PUT", f"{path}/likes/me", user=9, folder="api/reactions")
    assert (likes.status, likes.slug) == (410, "gone")
    for forgotten in (as_another_process, lambda: redis.execute("FLUSHALL")):
        forgotten()
        as_another_process()
        assert ask("GET", path).status == 410
        assert ask("PUT", f"{path}/likes/me", user=9, folder="api/reactions").status == 410
    world.queues.drain()
    assert ask("GET", path).status == 410
    check_counters()
    received = mysql.fetch_all("SELECT likes_received_total FROM user_counter WHERE user_id = 7")
    assert received == [(1,)], "what it had received stays counted"


def test_a_deleted_post_takes_no_comments_and_shows_none() -> None:
    post_id = post()
    comment_id = comment(post_id)
    ask("DELETE", f"/posts/{post_id}")
    for is_forgotten in (False, True):
        if is_forgotten:
            as_another_process()
        assert ask("GET", f"/posts/{post_id}/comments").status == 410
        assert ask("POST", f"/posts/{post_id}/comments", COMMENT).status == 410
    assert ask("GET", f"/comments/{comment_id}").status == 200, "it is its author's, and there"
    assert ask("DELETE", f"/comments/{comment_id}", user=8).status == 204
    check_counters()


def test_a_deleted_comment_is_counted_no_more() -> None:
    post_id = post()
    first, second = comment(post_id), comment(post_id)
    assert ask("DELETE", f"/comments/{first}", user=8).status == 204
    assert ask("GET", f"/posts/{post_id}").body["comments"] == 1
    listed = ask("GET", f"/posts/{post_id}/comments").body["items"]
    assert [item["id"] for item in listed] == [second]
    check_counters()


# ---------------------------------------------------------------- what isn't there


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
def test_what_is_not_there_is_a_404(method: str, path: str, name: str, world: World) -> None:
    body = REVIEW if "reviews" in path else COMMENT
    reply = ask(method, path.format(id=name), body if method == "POST" else None)
    assert (reply.status, reply.slug) == (404, "not-found")
    announced = set(world.queues.messages) - {"shops"}  # the filter of shops may be asked for
    assert not announced, "what can't be done is not announced"
    assert mysql.fetch_all("SELECT COUNT(*) FROM content") == [(0,)]


def test_who_asks_for_what_is_not_there_again_and_again_asks_mysql_once() -> None:
    ask("GET", "/posts/999")
    as_another_process()
    with content_api.counting_work() as work:
        for _ in range(5):
            assert ask("GET", "/posts/999").status == 404
    assert work.statements == 0


def test_a_shop_is_looked_up_once() -> None:
    ask("GET", f"/shops/{SHOP}/reviews")
    with content_api.counting_work() as work:
        ask("GET", f"/shops/{SHOP}/reviews")
    assert work.statements == 0


# ---------------------------------------------------------------- what can't be meant

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
def test_a_post_that_can_not_be_meant_is_a_400_that_names_the_field(
    body: Any, field: str, world: World
) -> None:
    reply = ask("POST", "/posts", body)
    assert (reply.status, reply.slug) == (400, "invalid-request")
    named = [error["field"] for error in reply.body.get("errors", [])] or [reply.body["detail"]]
    assert any(name.startswith(field) for name in named), named
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
def test_a_comment_that_can_not_be_meant_is_a_400(body: Any, field: str) -> None:
    reply = ask("POST", f"/posts/{post()}/comments", body)
    assert (reply.status, reply.body["errors"][0]["field"]) == (400, field)


@pytest.mark.parametrize(
    "score", [0, 6, -1, 1.5, 4.5, "4", True, None, [4], "NaN", 10**30], ids=repr
)
def test_a_score_is_a_whole_number_from_one_to_five(score: Any) -> None:
    reply = ask("POST", f"/shops/{SHOP}/reviews", REVIEW | {"score": score})
    assert (reply.status, reply.body["errors"][0]["field"]) == (400, "body.score")


@pytest.mark.parametrize("score", ["NaN", "Infinity", "1e400", "1" * 5_000])
def test_a_number_that_is_none_is_no_score(score: str) -> None:
    body = '{"body": "a", "score": ' + score + "}"
    assert ask("POST", f"/shops/{SHOP}/reviews", body).status == 400


def test_the_longest_that_is_allowed_is_kept_to_the_last_character() -> None:
    url = URL + "a" * (512 - len(URL))
    said = {"kind": "blog", "title": "漢" * 200, "body": "🍜" * 10_000, "images": [url] * 9}
    written = ask("POST", "/posts", json.dumps(said, ensure_ascii=False))
    assert written.status == 201
    as_another_process()
    redis.execute("FLUSHALL")
    read = ask("GET", f"/posts/{written.body['id']}")
    assert {name: read.body[name] for name in said} == said
    short = {"body": "🍜" * 2_000}
    assert ask("POST", f"/posts/{written.body['id']}/comments", short).body["body"] == short["body"]


def test_writing_takes_a_session() -> None:
    for path, body in (
        ("/posts", POST),
        (f"/posts/{post()}/comments", COMMENT),
        (f"/shops/{SHOP}/reviews", REVIEW),
    ):
        reply = ask("POST", path, body, user=None)
        assert (reply.status, reply.slug) == (401, "unauthenticated")


def test_who_asked_too_early_does_not_hide_what_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask("GET", "/posts/4711").status == 404
    like = ask("PUT", "/posts/4711/likes/me", folder="api/reactions")
    assert like.status == 404
    monkeypatch.setattr(ids, "new_id", lambda: 4711)
    assert post() == "4711"
    delete_keys(find_keys("*:text"))
    as_another_process()
    assert ask("GET", "/posts/4711").status == 200
    assert ask("PUT", "/posts/4711/likes/me", folder="api/reactions").status == 200

"""Requests with an Idempotency-Key: repeated, concurrent, refused."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import pymysql
import pytest

from cli.paths import ROOT
from local.stack.servers import connect_mysql
from plaza.core import idempotency
from plaza.core.idempotency import IdempotentRequest, mysql_expiry
from plaza.core.reactions import LIKE, Target
from plaza.core.reactions.react import react
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.social.content import mysql_store
from plaza.social.content.schemas import PostRequest
from tests.support.content_api import (
    COMMENT,
    POST,
    REVIEW,
    SHOP,
    add_shop,
    add_users,
    as_another_process,
    ask,
    check_counters,
    comment,
    is_lock_awaited,
    post,
)
from tests.support.plaza import World
from tests.support.stores import wait_for, without_tokens

KEY = "0b7e6a2c-2f3d-4d0b-9d6a-6f0f6a0c8f11"


@pytest.fixture(autouse=True)
def world(plaza: World) -> World:
    add_users(7, 8)
    add_shop()
    return plaza


def rows() -> int:
    """Return the number of posts, comments and reviews."""
    [(count,)] = mysql.fetch_all("SELECT COUNT(*) FROM content")
    return int(count)


# ---------------------------------------------------------------- in sequence


def test_a_repeated_request_returns_the_created_resource() -> None:
    post_id = post(8)
    for path, body in (
        ("/posts", POST),
        (f"/posts/{post_id}/comments", COMMENT),
        (f"/shops/{SHOP}/reviews", REVIEW),
    ):
        before = rows()
        key = KEY + path
        first = ask("POST", path, body, key=key)
        for reset in (lambda: None, as_another_process, lambda: redis.execute("FLUSHALL")):
            reset()
            again = ask("POST", path, body, key=key)
            assert (again.status, without_tokens(again.body)) == (201, without_tokens(first.body))
        assert rows() == before + 1
    check_counters()


def test_a_repeated_request_returns_current_totals(world: World) -> None:
    first = ask("POST", "/posts", POST, key=KEY)
    react(LIKE, Target("post", int(first.body["id"])), 7, True)
    comment(first.body["id"])
    again = ask("POST", "/posts", POST, key=KEY).body
    assert (again["likes"], again["comments"], again["mine"]["liked"]) == (1, 1, True)


def test_json_formatting_and_defaults_do_not_change_a_request() -> None:
    first = ask("POST", "/posts", POST, key=KEY)
    body = '{ "body":"Ask for the thick ones.", "title":"Noodles",\n "kind":"note" }'
    again = ask("POST", "/posts", body, key=KEY)
    assert (again.status, again.body["id"]) == (201, first.body["id"])


@pytest.mark.parametrize(
    "other",
    [
        POST | {"title": "Soup"},
        POST | {"kind": "blog"},
        POST | {"body": "Ask for the thin ones."},
        POST | {"images": ["https://pics.example/"]},
    ],
    ids=str,
)
def test_another_body_under_the_same_key_is_a_conflict(other: dict[str, Any]) -> None:
    ask("POST", "/posts", POST, key=KEY)
    refused = ask("POST", "/posts", other, key=KEY)
    assert (refused.status, refused.slug) == (409, "idempotency-key-reused")
    assert rows() == 1
    check_counters()


def test_another_route_under_the_same_key_is_a_conflict() -> None:
    first, second = post(8), post(8)
    ask("POST", f"/posts/{first}/comments", COMMENT, key=KEY)
    assert (
        ask("POST", f"/posts/{second}/comments", COMMENT, key=KEY).slug == "idempotency-key-reused"
    )
    assert ask("POST", "/posts", POST, key=KEY).slug == "idempotency-key-reused"


def test_keys_are_separate_per_user_and_optional() -> None:
    ids = {
        ask("POST", "/posts", POST, user=7, key=KEY).body["id"],
        ask("POST", "/posts", POST, user=8, key=KEY).body["id"],
        ask("POST", "/posts", POST, user=7, key=KEY.upper()).body["id"],
        ask("POST", "/posts", POST, user=7).body["id"],
        ask("POST", "/posts", POST, user=7).body["id"],
    }
    assert len(ids) == rows() == 5
    check_counters()


def test_a_refused_request_does_not_use_its_key() -> None:
    assert ask("POST", "/posts/999/comments", COMMENT, key=KEY).status == 404
    assert ask("POST", "/posts", POST | {"title": ""}, key=KEY).status == 400
    assert mysql.fetch_all("SELECT COUNT(*) FROM idempotency_key") == [(0,)]
    assert ask("POST", "/posts", POST, key=KEY).status == 201


def test_a_repeated_request_does_not_recreate_a_deleted_resource() -> None:
    first = ask("POST", "/posts", POST, key=KEY)
    ask("DELETE", f"/posts/{first.body['id']}")
    again = ask("POST", "/posts", POST, key=KEY)
    assert (again.status, again.slug) == (410, "gone")
    assert rows() == 1
    check_counters()


def test_a_repeated_comment_is_returned_after_its_post_was_deleted() -> None:
    post_id = post(8)
    first = ask("POST", f"/posts/{post_id}/comments", COMMENT, key=KEY)
    ask("DELETE", f"/posts/{post_id}", user=8)
    again = ask("POST", f"/posts/{post_id}/comments", COMMENT, key=KEY)
    assert (again.status, again.body["id"]) == (201, first.body["id"])


def test_a_key_expires_after_a_day() -> None:
    first = ask("POST", "/posts", POST, key=KEY)
    mysql_expiry.delete_expired(100)
    assert ask("POST", "/posts", POST, key=KEY).body["id"] == first.body["id"]
    mysql.write("UPDATE idempotency_key SET created_at = created_at - INTERVAL 25 HOUR")
    mysql_expiry.delete_expired(100)
    assert ask("POST", "/posts", POST, key=KEY).body["id"] != first.body["id"]


@pytest.mark.parametrize("key", ["", "a" * 129, "a b", "é", "a\x7f", "a\n", "\x00"], ids=ascii)
def test_a_key_that_is_not_visible_ascii_is_refused(key: str) -> None:
    refused = ask("POST", "/posts", POST, key=key)
    assert refused.status == 400
    assert refused.body["errors"][0]["field"] == "header.idempotency-key"
    assert rows() == 0


@pytest.mark.parametrize("key", ["a", "a" * 128, "a,b", "!~", "';--"])
def test_any_visible_ascii_is_a_key(key: str) -> None:
    first = ask("POST", "/posts", POST, key=key)
    assert (first.status, ask("POST", "/posts", POST, key=key).body["id"]) == (
        201,
        first.body["id"],
    )


# ---------------------------------------------------------------- concurrent


@contextmanager
def open_transaction(mysql_url: str, content_id: int) -> Iterator[pymysql.Connection[Any]]:
    """Run the same creation in a transaction that has claimed the key and is not committed."""
    draft = PostRequest.model_validate(POST).to_draft(7)
    other = connect_mysql(mysql_url)
    try:
        other.begin()
        with other.cursor() as cursor:
            target = Target("post", content_id)
            assert idempotency.claim(cursor, 7, IdempotentRequest.of(KEY, asdict(draft)), target)
            mysql_store.insert(cursor, content_id, draft)
            cursor.execute(
                "INSERT INTO user_counter (user_id, posts_total, version) VALUES (7, 1, 1)"
                " ON DUPLICATE KEY UPDATE posts_total = posts_total + 1, version = version + 1"
            )
        yield other
    finally:
        other.close()


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_concurrent_repeat_waits_and_the_resource_is_created_once(
    mysql_url: str, end: str
) -> None:
    with open_transaction(mysql_url, 4711) as other, ThreadPoolExecutor() as pool:
        second = pool.submit(ask, "POST", "/posts", POST, key=KEY)
        wait_for(lambda: is_lock_awaited(mysql_url), "the second waits for the first")
        getattr(other, end)()
        reply = second.result()
    assert reply.status == 201
    assert (reply.body["id"] == "4711") == (end == "commit")
    assert rows() == 1
    check_counters()


CREATE_20 = """
import sys
from dataclasses import asdict
from plaza.social.content import commands
from plaza.core.idempotency import IdempotentRequest
from plaza.social.content.schemas import PostRequest
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.queues import sqs
sqs.send = lambda *args, **options: None
sqs.send_all = lambda queue, bodies, until_s=None: len(bodies)
draft = PostRequest(kind="note", title="t", body="b").to_draft(7)
redis.execute("PING"), mysql.fetch_all("SELECT 1")
print("ready", flush=True)
sys.stdin.readline()
attempts = [IdempotentRequest.of(f"k{n}", asdict(draft)) for n in range(20)]
print([commands.create(draft, attempt).text.id for attempt in attempts], flush=True)
"""


def test_concurrent_processes_with_one_key_create_one_resource() -> None:
    env = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'layers/common/python'}"}
    command = [sys.executable, "-c", CREATE_20]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, cwd=ROOT, env=env, **pipes) for _ in range(4)]
    try:
        assert [p.stdout.readline() for p in processes if p.stdout] == ["ready\n"] * 4
        flush = threading.Thread(target=lambda: [redis.execute("FLUSHALL") for _ in range(20)])
        flush.start()
        printed = [p.communicate("go\n", timeout=60)[0].splitlines()[-1] for p in processes]
        flush.join()
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert len(set(printed)) == 1
    assert len(set(printed[0].strip("[]").split(", "))) == rows() == 20
    redis.execute("FLUSHALL")
    check_counters()

"""What the running stack does while a part of it is away, and that nothing is lost by it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from local.paths import ROOT
from local.stack.servers import Server
from local.stack.stack import Stack
from tests.e2e.client import Client, Reply, problem, read_like_totals, wait_until


@pytest.fixture
def redis_server(stack: Stack) -> Iterator[Server]:
    """The stack's Redis; it runs again after the test."""
    assert isinstance(stack.redis, Server)
    yield stack.redis
    stack.redis.resume()
    stack.redis.start()


@pytest.fixture
def mysql_server(stack: Stack) -> Iterator[Server]:
    """The stack's MariaDB; it runs again after the test."""
    assert stack.mysql is not None
    yield stack.mysql
    stack.mysql.resume()
    stack.mysql.start()


def audit(stack: Stack) -> dict[str, Any]:
    """The audit report, once it is quiet."""
    command = [sys.executable, "-m", "local", "--dir", str(stack.directory), "audit"]
    done = subprocess.run([*command, "--json", "--wait"], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout, done.stderr
    truth = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(truth, dict)
    return truth


def like(client: Client, post: int) -> Reply:
    return client("PUT", f"/posts/{post}/likes/me")


def until_answered(client: Client, post: int, status: int) -> Reply:
    """The first answer with ``status``; a breaker may still be open, a connection still be old."""
    found: list[Reply] = []

    def asked() -> bool:
        found[:] = [like(client, post)]
        return found[0].status == status

    wait_until(f"a like is answered {status}", asked)
    return found[0]


@pytest.mark.parametrize("how", ["stop", "pause"])
def test_without_redis_a_like_is_a_wish_that_mysql_grants_and_redis_learns_of(
    stack: Stack,
    redis_server: Server,
    user: Callable[[int], Client],
    anyone: Client,
    add: Callable[..., int],
    rows: Callable[..., Any],
    how: str,
) -> None:
    post, clients = add(), [user(n) for n in (31, 32, 33)]
    assert like(clients[0], post).json["likes"] == 1
    wait_until("the first like is saved", lambda: read_like_totals(rows, post) == (1, 1))

    getattr(redis_server, how)()
    wish = like(clients[1], post)
    assert wish.status == 202
    assert wish.json == {"liked": True, "likes": None, "changed": None, "exact": False}
    wait_until("MySQL has the wish", lambda: read_like_totals(rows, post) == (2, 2))
    question = {"targets": [{"type": "post", "id": str(post)}]}
    answer = anyone("POST", "/reactions/query", question)
    assert answer.status == 200
    assert (answer.json["items"][0]["likes"], answer.json["exact"]) == (2, False)
    wait_until("health says so", lambda: anyone("GET", "/health").json["status"] == "degraded", 10)

    redis_server.resume()
    redis_server.start()
    assert until_answered(clients[2], post, 200).json["liked"] is True
    wait_until("all three are saved", lambda: read_like_totals(rows, post) == (3, 3))
    truth = audit(stack)
    assert truth["clean"], truth
    likers = anyone("GET", f"/posts/{post}/likers").json["items"]
    assert {item["user_id"] for item in likers} == {"31", "32", "33"}


@pytest.mark.parametrize("how", ["stop", "pause"])
def test_without_mysql_what_redis_knows_is_decided_and_the_rest_is_asked_to_come_again(
    stack: Stack,
    mysql_server: Server,
    user: Callable[[int], Client],
    anyone: Client,
    add: Callable[..., int],
    rows: Callable[..., Any],
    how: str,
) -> None:
    warm, cold = add(), add()
    clients = [user(n) for n in (41, 42)]
    for client in clients:  # their sessions and the post are in Redis from here on
        like(client, warm)
    wait_until("both likes are saved", lambda: read_like_totals(rows, warm) == (2, 2))

    getattr(mysql_server, how)()
    unlike = clients[0]("DELETE", f"/posts/{warm}/likes/me")
    assert (unlike.status, unlike.json["likes"], unlike.json["exact"]) == (200, 1, True)
    refused = like(clients[1], cold)
    assert (refused.status, problem(refused)) == (503, "unavailable")
    assert int(refused.headers["retry-after"]) > 0
    assert anyone("GET", f"/posts/{warm}/likers").status == 200

    mysql_server.resume()
    mysql_server.start()
    assert until_answered(clients[1], cold, 200).json["likes"] == 1
    truth = audit(stack)
    assert truth["clean"], truth
    assert read_like_totals(rows, warm) == (1, 1)
    assert read_like_totals(rows, cold) == (1, 1)


def test_without_both_the_answer_is_503_and_says_when_to_come_again(
    redis_server: Server,
    mysql_server: Server,
    user: Callable[[int], Client],
    add: Callable[..., int],
) -> None:
    post, client = add(), user(51)
    redis_server.stop()
    mysql_server.stop()
    refused = like(client, post)
    assert (refused.status, problem(refused)) == (503, "unavailable")
    assert int(refused.headers["retry-after"]) > 0
    redis_server.start()
    mysql_server.start()
    assert until_answered(client, post, 200).json["likes"] == 1


def test_an_emptied_redis_is_filled_again_from_mysql(
    stack: Stack,
    redis_server: Server,
    user: Callable[[int], Client],
    add: Callable[..., int],
    rows: Callable[..., Any],
) -> None:
    post = add()
    for n in (61, 62, 63):
        like(user(n), post)
    wait_until("three likes are saved", lambda: read_like_totals(rows, post) == (3, 3))
    redis_server.kill()
    redis_server.start()
    again = until_answered(user(61), post, 200)
    assert (again.json["likes"], again.json["changed"]) == (3, False)
    assert user(62)("DELETE", f"/posts/{post}/likes/me").json["likes"] == 2
    truth = audit(stack)
    assert truth["clean"], truth

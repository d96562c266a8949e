"""Outages of Redis and MySQL on the deployed stack lose nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cli.paths import ROOT
from local.stack.servers import Server
from local.stack.stack import Stack
from tests.e2e.client import Client, Reply, problem, read_like_totals, wait_until

pytestmark = pytest.mark.outage


@pytest.fixture
def redis_server(stack: Stack) -> Iterator[Server]:
    """The stack's Redis, restarted after the test."""
    assert isinstance(stack.redis, Server)
    yield stack.redis
    stack.redis.resume()
    stack.redis.start()


@pytest.fixture
def mysql_server(stack: Stack) -> Iterator[Server]:
    """The stack's MariaDB, restarted after the test."""
    assert stack.mysql is not None
    yield stack.mysql
    stack.mysql.resume()
    stack.mysql.start()


def audit(stack: Stack) -> dict[str, Any]:
    """Return the audit report after waiting until nothing is in transit."""
    command = [sys.executable, "-m", "local", "--dir", str(stack.directory), "audit"]
    completed = subprocess.run(
        [*command, "--json", "--wait"], cwd=ROOT, capture_output=True, text=True
    )
    assert completed.stdout, completed.stderr
    report = json.loads(completed.stdout.splitlines()[-1])
    assert isinstance(report, dict)
    return report


def like(client: Client, post: int) -> Reply:
    return client("PUT", f"/posts/{post}/likes/me")


def like_until(client: Client, post: int, status: int) -> Reply:
    """Like until the reply has ``status``: a breaker may be open, or a connection broken."""
    replies: list[Reply] = []

    def has_status() -> bool:
        replies[:] = [like(client, post)]
        return replies[0].status == status

    wait_until(f"a like has the status {status}", has_status)
    return replies[0]


@pytest.mark.parametrize("how", ["stop", "pause"])
def test_a_like_is_provisional_without_redis_and_counted_later(
    stack: Stack,
    redis_server: Server,
    user: Callable[[int], Client],
    anonymous: Client,
    base_url: str,
    sign_in: Callable[..., str],
    add: Callable[..., int],
    rows: Callable[..., Any],
    how: str,
) -> None:
    post, clients = add(), [user(n) for n in (31, 32, 33)]
    admin = Client(base_url, sign_in(38, role="admin"))
    assert like(clients[0], post).json["likes"] == 1
    wait_until("the first like is saved", lambda: read_like_totals(rows, post) == (1, 1))

    getattr(redis_server, how)()
    provisional = like(clients[1], post)
    assert provisional.status == 202
    assert provisional.json == {
        "liked": True,
        "likes": None,
        "likes_at": None,
        "changed": None,
        "exact": False,
    }
    wait_until("the provisional like is stored", lambda: read_like_totals(rows, post) == (2, 2))
    reply = anonymous("POST", "/reactions/query", {"targets": [{"type": "post", "id": str(post)}]})
    assert reply.status == 200
    assert (reply.json["items"][0]["likes"], reply.json["exact"]) == (2, False)
    wait_until(
        "health is degraded",
        lambda: admin("GET", "/ops/health").json.get("status") == "degraded",
        10,
    )

    redis_server.resume()
    redis_server.start()
    assert like_until(clients[2], post, 200).json["liked"] is True
    wait_until("all three are saved", lambda: read_like_totals(rows, post) == (3, 3))
    report = audit(stack)
    assert report["clean"], json.dumps(report)
    likers = anonymous("GET", f"/posts/{post}/likers").json["items"]
    assert {item["user_id"] for item in likers} == {"31", "32", "33"}


@pytest.mark.parametrize("how", ["stop", "pause"])
def test_without_mysql_loaded_targets_are_decided_and_others_are_503(
    stack: Stack,
    mysql_server: Server,
    user: Callable[[int], Client],
    anonymous: Client,
    add: Callable[..., int],
    rows: Callable[..., Any],
    how: str,
) -> None:
    warm, cold = add(), add()
    clients = [user(n) for n in (41, 42)]
    for client in clients:  # loads the sessions and the post into Redis
        like(client, warm)
    wait_until("both likes are saved", lambda: read_like_totals(rows, warm) == (2, 2))
    assert anonymous("GET", f"/posts/{warm}/likers").status == 200  # loads the users' names

    getattr(mysql_server, how)()
    unlike = clients[0]("DELETE", f"/posts/{warm}/likes/me")
    assert (unlike.status, unlike.json["likes"], unlike.json["exact"]) == (200, 1, True)
    refused = like(clients[1], cold)
    assert (refused.status, problem(refused)) == (503, "unavailable")
    assert int(refused.headers["retry-after"]) > 0
    assert anonymous("GET", f"/posts/{warm}/likers").status == 200

    mysql_server.resume()
    mysql_server.start()
    assert like_until(clients[1], cold, 200).json["likes"] == 1
    report = audit(stack)
    assert report["clean"], json.dumps(report)
    assert read_like_totals(rows, warm) == (1, 1)
    assert read_like_totals(rows, cold) == (1, 1)


def test_without_redis_and_mysql_a_like_is_503_with_retry_after(
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
    assert like_until(client, post, 200).json["likes"] == 1


def test_a_killed_redis_is_hydrated_from_mysql(
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
    again = like_until(user(61), post, 200)
    assert (again.json["likes"], again.json["changed"]) == (3, False)
    assert user(62)("DELETE", f"/posts/{post}/likes/me").json["likes"] == 2
    report = audit(stack)
    assert report["clean"], json.dumps(report)

"""Requests to the content function in this process, and checks of its counters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from pymysql.cursors import Cursor

from bench.round_trips import count_round_trips
from local.stack import functions
from local.stack.functions import CONTEXT
from local.stack.servers import connect_mysql
from plaza.core import counters
from plaza.infra.mysql import mysql
from plaza.infra.runtime.process import clear_caches
from tests.support.routes import check_documented, find_folder, match

POST = {"kind": "note", "title": "Noodles", "body": "Ask for the thick ones.", "images": []}
COMMENT = {"body": "The thin ones are better."}
REVIEW = {"score": 4, "body": "Quick and warm."}
SHOP = 5


@dataclass
class Reply:
    """A response: ``body`` is its decoded JSON, None without a body."""

    status: int
    body: Any
    headers: dict[str, str]

    @property
    def slug(self) -> str:
        """The last part of a problem's type."""
        return str(self.body["type"]).rpartition("/")[2]


load_function = cache(functions.load_open_function)


def ask(
    method: str,
    path: str,
    body: Any = None,
    *,
    user: int | None = 7,
    role: str = "user",
    key: str | None = None,
    visitor: str | None = None,
    ip: str = "203.0.113.7",
    agent: str = "tests",
    folder: str | None = None,
) -> Reply:
    """Send one request in the format of API Gateway, to the function that has the route unless
    ``folder`` names one. A ``str`` is sent unchanged, else as JSON."""
    path, _, query = path.partition("?")
    headers = {"user-agent": agent, "content-type": "application/json"}
    if user is not None:
        headers["authorization"] = f"Bearer {functions.make_plain_token(user, role)}"
    if key is not None:
        headers["idempotency-key"] = key
    if visitor is not None:
        headers["x-visitor-id"] = visitor
    event: dict[str, Any] = {
        "version": "2.0",
        **match(method, path),
        "rawPath": path,
        "rawQueryString": query,
        "queryStringParameters": dict(p.split("=", 1) for p in query.split("&")) if query else {},
        "headers": headers,
        "requestContext": {
            "http": {"method": method, "path": path, "sourceIp": ip, "userAgent": agent},
            "stage": "$default",
            "requestId": "r",
        },
        "isBase64Encoded": False,
    }
    if body is not None:
        event["body"] = body if isinstance(body, str) else json.dumps(body)
    response = load_function(folder or find_folder(method, path)).handler(event, CONTEXT)
    check_documented(event["routeKey"], response)
    decoded = json.loads(response["body"]) if response.get("body") else None
    return Reply(response["statusCode"], decoded, response.get("headers") or {})


def create(path: str, body: Any, user: int = 7) -> str:
    """Create content by a POST to ``path``; return its id."""
    reply = ask("POST", path, body, user=user)
    assert reply.status == 201, reply.body
    return str(reply.body["id"])


def post(user: int = 7) -> str:
    """Create a post; return its id."""
    return create("/posts", POST, user)


def comment(post_id: str, user: int = 8) -> str:
    """Create a comment; return its id."""
    return create(f"/posts/{post_id}/comments", COMMENT, user)


def review(user: int = 7) -> str:
    """Create a review; return its id."""
    return create(f"/shops/{SHOP}/reviews", REVIEW, user)


def add_shop() -> None:
    """Insert the shop of these tests."""
    mysql.write("INSERT IGNORE INTO shop (id, name) VALUES (%s, 'Noodles')", (SHOP,))


def add_users(*user_ids: int) -> None:
    """Insert users with nicknames."""
    for user_id in user_ids:
        mysql.write(
            "INSERT IGNORE INTO user (id, nickname) VALUES (%s, %s)", (user_id, f"user{user_id}")
        )


def as_another_process() -> None:
    """Clear the local caches, as in a new process."""
    clear_caches()


def is_lock_awaited(mysql_url: str) -> bool:
    """Return whether a transaction waits for a lock.
    innodb_trx is not used: it is refreshed every 0.1 s only."""
    with connect_mysql(mysql_url) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")
        [(_, count)] = cursor.fetchall()
    return int(count) > 0


def check_counters() -> None:
    """Assert that the totals of posts and comments match the rows, in MySQL and for readers."""
    posts: dict[int, int] = dict(
        mysql.fetch_all(
            "SELECT author_id, CAST(SUM(deleted_at IS NULL) AS SIGNED) FROM content"
            " WHERE content_type = 'post' GROUP BY author_id"
        )
    )
    comments: dict[int, int] = dict(
        mysql.fetch_all(
            "SELECT parent_id, CAST(SUM(deleted_at IS NULL) AS SIGNED) FROM content"
            " WHERE content_type = 'comment' GROUP BY parent_id"
        )
    )
    counted: dict[int, int] = dict(mysql.fetch_all("SELECT user_id, posts_total FROM user_counter"))
    assert {user: counted.get(user, 0) for user in posts} == posts
    of_posts: dict[int, int] = dict(
        mysql.fetch_all(
            "SELECT target_id, total FROM counter WHERE target_type = 'post' AND kind = 'comment'"
        )
    )
    assert {post_id: of_posts.get(post_id, 0) for post_id in comments} == comments
    read = counters.read_users(sorted(posts))
    assert {user: totals.posts_total for user, totals in read.items()} == posts
    assert counters.read_comments(sorted(comments)) == comments


class Work:
    """The statements and round trips that were counted."""

    statements = 0
    round_trips = 0


@contextmanager
def counting_work() -> Iterator[Work]:
    """Count statements, also those in transactions, and round trips to Redis."""
    work, execute = Work(), Cursor.execute

    def execute_counted(cursor: Cursor, *args: Any) -> Any:
        work.statements += 1
        return execute(cursor, *args)

    with pytest.MonkeyPatch.context() as patch, count_round_trips() as sent:
        patch.setattr(Cursor, "execute", execute_counted)
        yield work
        work.round_trips = sent.sent

"""A client of the deployed API, as curl would be, and waiting for what comes later."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import urllib3


@functools.cache
def pool_from(source: str | None) -> urllib3.PoolManager:
    """Connections that come from ``source``, a loopback address; None: from any."""
    origin: dict[str, Any] = {"source_address": (source, 0)} if source else {}
    return urllib3.PoolManager(maxsize=32, retries=False, **origin)


@dataclass(frozen=True)
class Reply:
    """An answer: ``json`` is its body."""

    status: int
    headers: dict[str, str]
    json: Any


@dataclass(frozen=True)
class Client:
    """Calls ``base_url``, as the user of ``token`` if there is one, from the address ``source``."""

    base_url: str
    token: str | None = None
    source: str | None = None

    def __call__(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Reply:
        """One request. ``body`` is sent as JSON, bytes as they are."""
        sent = dict(headers or {})
        if self.token:
            sent.setdefault("authorization", f"Bearer {self.token}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("content-type", "application/json")
        url = self.base_url + path
        answer = pool_from(self.source).request(method, url, body=body, headers=sent, timeout=60)
        said = json.loads(answer.data) if answer.data else None
        return Reply(answer.status, {k.lower(): v for k, v in answer.headers.items()}, said)


def problem(reply: Reply) -> str:
    """The last part of a problem's type, after a look at the rest of it."""
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json["status"] == reply.status
    assert reply.json["title"]
    assert reply.json["detail"]
    return str(reply.json["type"]).rpartition("/")[2]


def read_like_totals(rows: Callable[..., Any], post: int) -> tuple[int, int]:
    """(counter, COUNT(*)) of a post's likes in MySQL."""
    counter = rows("SELECT like_total FROM content_counter WHERE target_id = %s", post)
    number = rows(
        "SELECT COUNT(*) FROM reaction WHERE target_id = %s AND kind = 'like' AND state = 1", post
    )
    return (counter[0][0] if counter else 0), number[0][0]


def wait_until(what: str, condition: Callable[[], Any], timeout_s: float = 30) -> Any:
    """The first true value of ``condition``; fails with ``what`` when the time is over."""
    deadline_s = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline_s, f"waited {timeout_s} s: {what}"
        time.sleep(0.05)
    return value

"""An HTTP client of the deployed API, and helpers that wait for asynchronous results."""

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
    """Return a pool of connections from the loopback address ``source``; None: from any."""
    origin: dict[str, Any] = {"source_address": (source, 0)} if source else {}
    return urllib3.PoolManager(maxsize=32, retries=False, **origin)


@dataclass(frozen=True)
class Reply:
    """A response; ``json`` is its decoded body, None without one."""

    status: int
    headers: dict[str, str]
    json: Any


@dataclass(frozen=True)
class Client:
    """Calls ``base_url`` from the address ``source``, with ``token`` if there is one."""

    base_url: str
    token: str | None = None
    source: str | None = None

    def __call__(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Reply:
        """Send one request. ``body`` is sent as JSON, bytes unchanged."""
        sent = dict(headers or {})
        if self.token:
            sent.setdefault("authorization", f"Bearer {self.token}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("content-type", "application/json")
        url = self.base_url + path
        response = pool_from(self.source).request(method, url, body=body, headers=sent, timeout=60)
        decoded = json.loads(response.data) if response.data else None
        return Reply(response.status, {k.lower(): v for k, v in response.headers.items()}, decoded)


def problem(reply: Reply) -> str:
    """Check the form of a problem and return the last part of its type."""
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json["status"] == reply.status
    assert reply.json["title"]
    assert reply.json["detail"]
    return str(reply.json["type"]).rpartition("/")[2]


def read_like_totals(rows: Callable[..., Any], post: int) -> tuple[int, int]:
    """Return (counter, COUNT(*)) of a post's likes in MySQL."""
    counter = rows("SELECT like_total FROM content_counter WHERE target_id = %s", post)
    number = rows(
        "SELECT COUNT(*) FROM reaction WHERE target_id = %s AND kind = 'like' AND state = 1", post
    )
    return (counter[0][0] if counter else 0), number[0][0]


def wait_until(what: str, condition: Callable[[], Any], timeout_s: float = 30) -> Any:
    """Return the first true value of ``condition``; fail with ``what`` after ``timeout_s``."""
    deadline_s = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline_s, f"waited {timeout_s} s: {what}"
        time.sleep(0.05)
    return value

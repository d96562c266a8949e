"""The tests' client of the deployed API, and helpers that wait for asynchronous results.

``client.plaza`` is plaza-client, with its named methods and retries. Calling ``client`` sends one
request as it is, over the same connections, and returns whatever is answered.
"""

from __future__ import annotations

import functools
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from plaza_client import Plaza


@functools.cache
def connect(base_url: str, source: str | None) -> Plaza:
    """Return a client over connections from the loopback address ``source``; None: from any."""
    limits = httpx.Limits(max_keepalive_connections=32, keepalive_expiry=2)
    transport = httpx.HTTPTransport(local_address=source, limits=limits, verify=False)
    return Plaza(base_url, timeout_s=60, transport=transport)


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

    @property
    def plaza(self) -> Plaza:
        """plaza-client, with the token."""
        return connect(self.base_url, self.source).with_token(self.token)

    def __call__(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Reply:
        """Send one request. ``body`` is sent as JSON, bytes unchanged."""
        sent = {name.lower(): value.encode("latin-1") for name, value in (headers or {}).items()}
        if self.token:
            sent.setdefault("authorization", f"Bearer {self.token}".encode())
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("content-type", b"application/json")
        response = connect(self.base_url, self.source).send_once(
            method, path, content=body, headers=sent
        )
        decoded = json.loads(response.content) if response.content else None
        return Reply(response.status_code, dict(response.headers), decoded)


def problem(reply: Reply) -> str:
    """Check the form of a problem and return its slug."""
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json["status"] == reply.status
    assert reply.json["title"]
    assert reply.json["detail"]
    slug = str(reply.json["slug"])
    leads_to = rf"http://127\.0\.0\.1:\d+/docs/problems#{slug}"
    assert re.fullmatch(leads_to, reply.json["type"]), reply.json
    return slug


def read_like_totals(rows: Callable[..., Any], post: int) -> tuple[int, int]:
    """Return (counter, COUNT(*)) of a post's likes in MySQL."""
    counter = rows("SELECT total FROM counter WHERE target_id = %s AND kind = 'like'", post)
    number = rows(
        "SELECT COUNT(*) FROM reaction WHERE target_id = %s AND kind = 'like' AND state = 1", post
    )
    return (counter[0][0] if counter else 0), number[0][0]


def wait_until(what: str, condition: Callable[[], Any], timeout_s: float = 120) -> Any:
    """Return the first true value of ``condition``; fail with ``what`` after ``timeout_s``."""
    deadline_s = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline_s, f"waited {timeout_s} s: {what}"
        time.sleep(0.05)
    return value

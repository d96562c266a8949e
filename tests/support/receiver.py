"""A receiver of webhooks on this machine: it records what it gets, and answers as a test wants."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.http_servers import Quiet, serving


@dataclass
class Receiver:
    """``statuses``: of the next answers, 204 afterwards. ``ids`` are of the requests that got a
    2xx, ``requests`` of all: headers and body."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    requests: list[tuple[Mapping[str, str], bytes]] = field(default_factory=list)

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.requests]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Start a receiver on a free port."""
    receiver = Receiver()

    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            body = self.rfile.read(length)
            if len(body) < length:  # its sender was killed while it sent
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.requests.append((headers, body))
            status = receiver.statuses.pop(0) if receiver.statuses else 204
            if 200 <= status < 300:
                receiver.ids.append(headers["webhook-id"])
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("location", receiver.url + "/elsewhere")
            self.send_header("content-length", "0")
            self.end_headers()

    with serving(Handler) as url:
        receiver.url = f"{url}/hook"
        yield receiver


def is_signed(headers: Mapping[str, str], body: bytes, secret: str) -> bool:
    """Return whether a request has a signature of a secret, by the text of Standard Webhooks."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
    return f"v1,{expected}" in headers["webhook-signature"].split(" ")

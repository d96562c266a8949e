"""A push service on loopback, browsers that subscribe at it, and the key pair of a deployment."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

import http_ece
import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from plaza.notifications.push import Subscription
from tests.support.http_servers import Quiet, serving

CONTACT = "mailto:ops@plaza.example"


def encode(raw: bytes) -> str:
    """Return base64url without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _point_of(key: ec.EllipticCurvePrivateKey) -> str:
    public = key.public_key()
    return encode(public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))


@dataclass(frozen=True)
class KeyPair:
    """The key pair that a deployment signs with."""

    private: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    @property
    def public(self) -> str:
        return _point_of(self.private)

    @property
    def pem(self) -> str:
        raw = self.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return raw.decode()


class Answer(NamedTuple):
    """What the service answers."""

    status: int = 201
    headers: Mapping[str, str] = {}


class Received(NamedTuple):
    """A request that the service got."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class FakePushService:
    """A push service. ``answers``: path -> answer, 201 for others."""

    url: str = ""
    answers: dict[str, Answer] = field(default_factory=dict)
    received: list[Received] = field(default_factory=list)

    def subscribe(self, name: str) -> Browser:
        """Return a browser with an endpoint of this service."""
        return Browser(self, f"/push/{name}")

    def check_signature(self, request: Received, keys: KeyPair) -> None:
        """Assert that a request is signed for this service by ``keys``."""
        scheme, _, rest = request.headers["authorization"].partition(" ")
        parts = dict(part.strip().split("=", 1) for part in rest.split(","))
        assert scheme == "vapid"
        assert parts["k"] == keys.public
        claims = jwt.decode(
            parts["t"], keys.private.public_key(), algorithms=["ES256"], audience=self.url
        )
        assert claims["sub"] == CONTACT


@dataclass
class Browser:
    """A browser that is subscribed at a service."""

    service: FakePushService
    path: str
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    auth: bytes = bytes(range(16))

    @cached_property
    def subscription(self) -> Subscription:
        return Subscription(self.service.url + self.path, _point_of(self.key), encode(self.auth))

    @property
    def requests(self) -> list[Received]:
        return [request for request in self.service.received if request.path == self.path]

    def read(self) -> list[dict[str, Any]]:
        """Return what was pushed to this browser, decrypted."""
        return [json.loads(self.decrypt(request.body)) for request in self.requests]

    def decrypt(self, body: bytes) -> bytes:
        decrypted: bytes = http_ece.decrypt(
            body, private_key=self.key, auth_secret=self.auth, version="aes128gcm"
        )
        return decrypted


@contextmanager
def serving_pushes() -> Iterator[FakePushService]:
    """Serve a push service on a socket."""
    service = FakePushService()

    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            service.received.append(Received(self.path, headers, body))
            status, sent = service.answers.get(self.path, Answer())
            self.send_response(status)
            for name, value in {"Content-Length": "0", **sent}.items():
                self.send_header(name, value)
            self.end_headers()

    with serving(Handler) as service.url:
        yield service

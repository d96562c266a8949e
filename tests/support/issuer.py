"""An issuer of OpenID Connect: keys, ID tokens, and a server of its documents."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from plaza.people.auth.issuers import ISSUER_KEYS, IssuerKeys, select_keys
from tests.support.http_servers import Quiet, serving

URL, AUDIENCE = "https://id.example.com", "plaza-app"
ISSUERS = f"{URL}|{AUDIENCE}"


@cache
def make_rsa(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    """Return the RSA key of a name, the same for each call."""
    return rsa.generate_private_key(public_exponent=65_537, key_size=bits)


@cache
def make_ec(name: str) -> ec.EllipticCurvePrivateKey:
    """Return the P-256 key of a name, the same for each call."""
    return ec.generate_private_key(ec.SECP256R1())


@dataclass
class FakeIssuer:
    """An issuer. ``keys``: key id -> private key; ``documents``: path -> status, body."""

    url: str = URL
    keys: dict[str, Any] = field(
        default_factory=lambda: {"r1": make_rsa("r1"), "e1": make_ec("e1")}
    )
    documents: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Return the claims of a token for ``ann``; None leaves one out."""
        now_s = int(time.time())
        claims = {"iss": self.url, "sub": "ann", "aud": AUDIENCE, "iat": now_s, "exp": now_s + 600}
        return {name: value for name, value in (claims | changes).items() if value is not None}

    def sign(
        self, kid: str = "e1", *, header: Mapping[str, Any] | None = None, **changes: Any
    ) -> str:
        """Return a token that the key ``kid`` has signed."""
        key = self.keys[kid]
        algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
        return jwt.encode(
            self.claims(**changes), key, algorithm=algorithm, headers={"kid": kid, **(header or {})}
        )

    def key_set(self) -> dict[str, Any]:
        """Return the key set as a dict."""
        entries = []
        for kid, key in self.keys.items():
            kind = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
            entries.append(kind.to_jwk(key.public_key(), as_dict=True) | {"kid": kid, "use": "sig"})
        return {"keys": entries}

    def stored(self) -> str:
        """Return the text of the secret that has the keys of this issuer."""
        return ISSUER_KEYS.encode(IssuerKeys({self.url: select_keys(self.key_set())}))

    def publish(self) -> None:
        """Serve the configuration and the keys that this issuer has now."""
        configuration = {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        for path, document in (
            ("/.well-known/openid-configuration", configuration),
            ("/keys", self.key_set()),
        ):
            self.documents[path] = (200, json.dumps(document).encode())


@contextmanager
def serving_issuer() -> Iterator[FakeIssuer]:
    """Serve the documents of an issuer on a loopback port until the end of the block."""

    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = issuer.documents.get(self.path, (404, b"{}"))
            self.send_response(status)
            for name, value in issuer.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with serving(Handler) as url:
        issuer = FakeIssuer(url)
        issuer.publish()
        yield issuer


def encode_part(value: Any) -> str:
    """Return a part of a token: JSON, or bytes, in base64url."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

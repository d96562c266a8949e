"""``id-token``: an ID token of the stack's issuer, for an app that has users of its own.

The issuer is a part of the web server (``local.web``). Its key is made with each start.
"""

import argparse
import json
import secrets
import time
from pathlib import Path
from typing import Any, Protocol, cast

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from local.stack import kept

AUDIENCE = "plaza-local"
KEY = "issuer.json"
CONFIGURATION, KEYS = "/issuer/.well-known/openid-configuration", "/issuer/keys"
LIFE_S = 600


class _Stack(Protocol):
    @property
    def directory(self) -> Path: ...


def main(stack: _Stack, args: argparse.Namespace) -> int:
    """Print a token."""
    print(make_id_token(stack.directory, args.subject, args.nonce))
    return 0


def name_issuer(web_port: int) -> str:
    """Return the URL of the issuer of a web server."""
    return f"http://127.0.0.1:{web_port}/issuer"


def make_key(directory: Path, web_port: int) -> None:
    """Make the key of a stack's issuer."""
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    issuer = {"url": name_issuer(web_port), "kid": secrets.token_hex(8), "pem": pem.decode()}
    kept.write_private(directory / KEY, issuer)


def read_document(directory: Path, path: str) -> dict[str, Any]:
    """Return what the issuer serves at a path: its configuration or its public key."""
    issuer = json.loads((directory / KEY).read_text())
    if path == CONFIGURATION:
        return {"issuer": issuer["url"], "jwks_uri": issuer["url"] + "/keys"}
    key = serialization.load_pem_private_key(issuer["pem"].encode(), None)
    public = ECAlgorithm.to_jwk(cast(ec.EllipticCurvePrivateKey, key).public_key(), as_dict=True)
    return {"keys": [public | {"kid": issuer["kid"], "use": "sig", "alg": "ES256"}]}


def make_id_token(directory: Path, subject: str, nonce: str | None = None) -> str:
    """Return a new token of a subject, as an issuer signs it."""
    issuer, now_s = json.loads((directory / KEY).read_text()), int(time.time())
    claims = {
        "iss": issuer["url"],
        "sub": subject,
        "aud": AUDIENCE,
        "iat": now_s,
        "exp": now_s + LIFE_S,
        "jti": secrets.token_hex(8),
    }
    if nonce is not None:
        claims["nonce"] = nonce
    return jwt.encode(claims, issuer["pem"], algorithm="ES256", headers={"kid": issuer["kid"]})

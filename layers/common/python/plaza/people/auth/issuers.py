"""Issuers of OpenID Connect whose ID tokens sign in, and their public keys. No I/O.

Only RSA keys of 2,048 to 4,096 bits and P-256 keys are used, each with the one algorithm of its
kind. So the header of a token chooses neither an algorithm nor the kind of a key.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from plaza.infra.http.urls import Url, parse_url
from plaza.infra.runtime.codec import Codec, Struct, field, json_codec
from plaza.infra.runtime.errors import Unauthenticated

MAX_ISSUERS = 10
MAX_KEYS = 20
MAX_URL_CHARS = 200
MAX_KEY_ID_CHARS = 200
ALGORITHMS = {"RSA": "RS256", "EC": "ES256"}
_RSA_BYTES = range(256, 513)
_COORDINATE_BYTES = 32
_KEY_ID = re.compile(r"[ -~]+")


class IdTokenRefused(Unauthenticated):
    """The ID token is not signed by an accepted issuer, is not meant for this deployment, was used
    or is over."""

    slug = "id-token-refused"
    title = "ID token refused"
    example = "The ID token is expired; get a new one from its issuer."


class Issuer(NamedTuple):
    """An issuer that the deployment accepts: its ``url``, the claim ``iss``, the values of ``aud``
    of which a token has one, and whether its tokens need a nonce."""

    url: str
    audiences: tuple[str, ...]
    requires_nonce: bool = False


class PublicKey(Struct, frozen=True, omit_defaults=True):
    """A key of an issuer, as in a JSON Web Key Set: modulus and exponent, or a point of P-256."""

    kty: str
    kid: str
    n: str = ""
    e: str = ""
    crv: str = ""
    x: str = ""
    y: str = ""


class IssuerKeys(Struct, frozen=True):
    """The keys of all issuers, by URL."""

    issuers: dict[str, list[PublicKey]] = field(default_factory=dict)


ISSUER_KEYS: Codec[IssuerKeys] = json_codec("issuer_keys", IssuerKeys, order="sorted")


def parse_issuers(text: str, *, is_local: bool) -> tuple[Issuer, ...]:
    """Return the issuers in ``https://id.example.com|app,https://other.example|web|nonce``, one for
    each URL with all of its audiences. A third part ``nonce`` requires a nonce in all tokens of the
    issuer. Raises ValueError. ``is_local``: a loopback address may have http."""
    audiences: dict[str, list[str]] = {}
    with_nonce: set[str] = set()
    for entry in filter(None, (part.strip() for part in text.split(","))):
        url, *names = entry.split("|")
        if not names or not names[0] or names[1:] not in ([], ["nonce"]):
            raise ValueError(f"{entry!r} is not a URL, | and an audience, then maybe |nonce")
        try:
            parsed = parse_server_url(url, is_local=is_local)
        except ValueError as error:
            raise ValueError(f"{url!r}: the URL {error}") from None
        if "?" in parsed.target or len(url) > MAX_URL_CHARS:
            raise ValueError(f"{url!r} has a query or more than {MAX_URL_CHARS} characters")
        audiences.setdefault(url, []).append(names[0])
        if names[1:]:
            with_nonce.add(url)
    if len(audiences) > MAX_ISSUERS:
        raise ValueError(f"{len(audiences)} issuers are more than {MAX_ISSUERS}")
    return tuple(Issuer(url, tuple(of), url in with_nonce) for url, of in audiences.items())


def parse_server_url(text: object, *, is_local: bool) -> Url:
    """Return a URL of https; ``is_local``: or of http at a loopback address. Raises ValueError."""
    url = parse_url(text)
    if url.scheme != "https" and not (is_local and url.is_loopback_http):
        raise ValueError("is https")
    return url


def select_keys(key_set: Any) -> list[PublicKey]:
    """Return the keys of a JSON Web Key Set that may sign ID tokens, at most ``MAX_KEYS``. All
    others are left out. Raises ValueError for what is not a key set."""
    if not isinstance(key_set, dict) or not isinstance(key_set.get("keys"), list):
        raise ValueError("it has no list of keys")
    keys = [key for entry in key_set["keys"] if (key := _parse_key(entry))]
    return keys[:MAX_KEYS]


def _parse_key(entry: Any) -> PublicKey | None:
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
        return None
    kty, kid = entry.get("kty"), entry.get("kid")
    if not isinstance(kid, str) or len(kid) > MAX_KEY_ID_CHARS or not _KEY_ID.fullmatch(kid):
        return None
    if entry.get("alg", ALGORITHMS.get(str(kty))) != ALGORITHMS.get(str(kty)):
        return None
    if kty == "RSA" and _measure(entry, "n") in _RSA_BYTES and _measure(entry, "e") in range(1, 5):
        return PublicKey("RSA", kid, n=entry["n"], e=entry["e"])
    point = {_measure(entry, name) for name in ("x", "y")}
    if kty == "EC" and entry.get("crv") == "P-256" and point == {_COORDINATE_BYTES}:
        return PublicKey("EC", kid, crv="P-256", x=entry["x"], y=entry["y"])
    return None


def _measure(entry: Mapping[str, Any], name: str) -> int:
    """Return the length in bytes of a base64url number without leading zeros but in coordinates;
    0 if it is none."""
    text = entry.get(name)
    if not isinstance(text, str) or not re.fullmatch(r"[A-Za-z0-9_-]+", text):
        return 0
    try:
        number = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return 0
    return len(number if name in ("x", "y") else number.lstrip(b"\0"))

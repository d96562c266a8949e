"""Keys of servers, and what they may do. No I/O.

A key is ``sk_<id>_<secret>``. The id is in tables and log lines; the secret is sent once to the
operator who makes the key, and stored as its SHA-256.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import string
from datetime import datetime
from typing import Literal, NamedTuple, get_args

from plaza.infra.runtime.errors import Conflict

Scope = Literal["read", "act", "moderate", "events", "export", "erase"]
SCOPES = frozenset(get_args(Scope))
NAME_PATTERN = r"[a-z][a-z-]{0,31}"
KEY_ID_PATTERN = r"[A-Za-z0-9]{16}"
MAX_REQUESTS_PER_S = 10_000
BURST = 5
"""A key may send so many seconds' requests at once."""

MAX_VALID_PER_NAME = 2
"""Keys of one name that are valid at a time: the one in use, and the one that replaces it."""

MAX_KEY_AGE_S = 60
"""How long a process uses a key before it reads it again, and so how long a key that was ended may
still be accepted."""

MAX_KEY_AGE_WITHOUT_MYSQL_S = 3_600
"""The same while MySQL is unavailable."""

READS_BY_POST = frozenset({"POST /reactions/query"})
"""Reads that need a body."""

MODERATION = frozenset(
    {"GET /ops/reports", "PUT /ops/reports/{report_id}/outcome"}
    | {
        f"{method} /ops/{kind}s/{{{kind}_id}}/hidden"
        for method in ("PUT", "DELETE")
        for kind in ("post", "comment", "review")
    }
)
"""The routes of moderators. All other routes of admins but ``EVENTS`` are closed to keys."""

OF_ITS_OWN: dict[str, Scope] = {"GET /users/me/export": "export", "DELETE /users/me": "erase"}
"""Routes that neither ``read`` nor ``act`` covers: all data of a user, and its end."""

MODERATORS = frozenset({"moderator", "admin"})
"""Roles of the users for whom a key moderates."""

EVENTS = "GET /ops/events"
"""The route of what happened to all users, which a key reads for none of them."""

FOR_NO_USER = frozenset(
    {
        "PUT /targets/{target_type}/{target_id}",
        "DELETE /targets/{target_type}/{target_id}",
        "POST /targets",
    }
)
"""The routes that a key calls for none of its users, with the scope ``act``."""

_ID_CHARS = string.ascii_letters + string.digits
_BEARER = re.compile(rf"bearer +sk_({KEY_ID_PATTERN})_([A-Za-z0-9_-]{{43}})", re.IGNORECASE)


class TooManyServerKeys(Conflict):
    """The name has two valid keys."""

    slug = "too-many-server-keys"
    title = "Too many server keys"
    example = "The name web has 2 valid keys. End one."

    def __init__(self, name: str) -> None:
        super().__init__(f"The name {name} has {MAX_VALID_PER_NAME} valid keys. End one.")


class PresentedKey(NamedTuple):
    """What a request has sent: the id, and the SHA-256 of the secret."""

    key_id: str
    secret_sha256: bytes


class ServerKey(NamedTuple):
    """A stored key. Times are in UTC."""

    key_id: str
    secret_sha256: bytes
    name: str
    scopes: frozenset[str]
    requests_per_s: int
    created_at: datetime
    used_at: datetime | None
    ended_at: datetime | None

    def admits(self, presented: PresentedKey) -> bool:
        """Return whether the key is valid and ``presented`` has its secret. Its time does not
        depend on the secret."""
        is_right = hmac.compare_digest(self.secret_sha256, presented.secret_sha256)
        return is_right and self.ended_at is None


def make_key() -> tuple[str, PresentedKey]:
    """Return a new key as text, and as it is stored. It has 258 random bits."""
    key_id = "".join(secrets.choice(_ID_CHARS) for _ in range(16))
    secret = secrets.token_urlsafe(32)
    return f"sk_{key_id}_{secret}", PresentedKey(key_id, _hash(secret))


def parse_server_key(header: str) -> PresentedKey | None:
    """Return the key in an Authorization header, None if it has none."""
    match = _BEARER.fullmatch(header.strip())
    return PresentedKey(match[1], _hash(match[2])) if match else None


def scope_of(route: str) -> str:
    """Return the scope that a route needs, such as ``PUT /posts/{post_id}/likes/me``."""
    if route in MODERATION:
        return "moderate"
    if route == EVENTS:
        return "events"
    if route in OF_ITS_OWN:
        return OF_ITS_OWN[route]
    return "read" if route.startswith("GET ") or route in READS_BY_POST else "act"


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()

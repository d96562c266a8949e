"""Sessions and their tokens. No I/O."""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import datetime
from typing import Literal, NamedTuple

MAX_ROLE_AGE_S = 60
"""Bounds the age of a session's role, and how long an ended session may still be accepted."""

MAX_SKEW_S = 5
"""How far the clock of the process that read a session from MySQL may be ahead."""

MAX_CACHED_S = 3_600
"""How long Redis has a session that is not read from MySQL again."""

KEPT_S = 2 * MAX_CACHED_S
"""How long Redis has the mark of an ended session, and MySQL its row unless Redis has the mark:
longer than Redis has any copy that was read before the end."""

MAX_PASSKEY_SESSION_S = 12 * 3_600
"""How long a session that a passkey opened lasts, used or not."""

MAX_CLIENT_CHARS = 200
SESSION_ID_PATTERN = r"^[0-9a-f]{32}$"

Method = Literal["code", "id_token", "passkey", "operate"]
"""How a session was opened. In one that a code or an ID token opened, each user has the role
``user``: an operator signs in with a passkey. The function Operate opens ``operate``."""

WEAK_METHODS: tuple[Method, ...] = ("code", "id_token")

_INVISIBLE = re.compile(r"[^ -~]+")
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE)


class Session(NamedTuple):
    """A signed-in user. Times are seconds since 1970.

    ``expires_at_s`` moves with use and never passes ``ends_at_s``. ``role`` is the role that the
    session had in MySQL at ``checked_at_s``. ``signed_in_at_s``: of a session that was read
    from MySQL; 0 for others.
    """

    user_id: int
    role: str
    expires_at_s: int
    ends_at_s: int
    checked_at_s: int
    signed_in_at_s: int = 0

    def is_over(self, now_s: float) -> bool:
        return min(self.expires_at_s, self.ends_at_s) <= now_s

    def needs_check(self, now_s: float) -> bool:
        """Return whether its last read of MySQL is too old, or in the future."""
        return not now_s - MAX_ROLE_AGE_S <= self.checked_at_s <= now_s + MAX_SKEW_S

    def next_expiry_s(self, now_s: float, ttl_s: int) -> int:
        return min(int(now_s) + ttl_s, self.ends_at_s)

    def needs_extension(self, now_s: float, ttl_s: int) -> bool:
        """Return whether a use now would extend it by more than a hundredth of ``ttl_s``."""
        return self.expires_at_s < self.next_expiry_s(now_s, ttl_s) - ttl_s / 100


class Opening(NamedTuple):
    """How a session is opened, and the User-Agent of the client."""

    method: Method = "operate"
    client: str | None = None

    @classmethod
    def by(cls, method: Method, user_agent: str | None) -> Opening:
        """Return an opening with at most 200 visible characters of ``user_agent``."""
        text = _INVISIBLE.sub(" ", user_agent or "").strip()[:MAX_CLIENT_CHARS].rstrip()
        return cls(method, text or None)


OPERATE = Opening()


class OwnSession(NamedTuple):
    """An open session, as its user lists it. Times are in UTC."""

    token_sha256: bytes
    role: str
    method: Method
    client: str | None
    signed_in_at: datetime
    expires_at: datetime

    @property
    def name(self) -> str:
        return name_session(self.token_sha256)


def name_session(token_sha256: bytes) -> str:
    """Return the id of a session in the API, which is no token and leads to none."""
    return hashlib.sha256(token_sha256).hexdigest()[:32]


def make_token() -> str:
    """Return a token of 256 random bits: sent once, never stored."""
    return secrets.token_urlsafe(32)


def hash_token(token: str) -> bytes:
    """Return the SHA-256 of a token, for storage. 256 random bits need no salt."""
    return hashlib.sha256(token.encode()).digest()


def parse_bearer(header: str) -> str | None:
    """Return the token in an Authorization header, None if it is malformed."""
    match = _BEARER.fullmatch(header.strip())
    if match is None or not _TOKEN.fullmatch(match[1]):
        return None
    return match[1]

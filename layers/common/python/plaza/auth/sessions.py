"""Sessions and their tokens. No I/O."""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import NamedTuple

MAX_ROLE_AGE_S = 60
"""Bounds the age of a session's role, and how long an ended session may still be accepted."""

MAX_CACHED_S = 3_600
"""How long Redis has a session that is not read from MySQL again."""

KEPT_S = 2 * MAX_CACHED_S
"""How long Redis has the mark of an ended session, and MySQL its row unless Redis has the mark:
longer than Redis has any copy that was read before the end."""

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE)


class Session(NamedTuple):
    """A signed-in user. Times are seconds since 1970.

    ``expires_at_s`` moves with use and never passes ``ends_at_s``. ``role`` is the role that the
    user had in MySQL at ``checked_at_s``.
    """

    user_id: int
    role: str
    expires_at_s: int
    ends_at_s: int
    checked_at_s: int

    def is_over(self, now_s: float) -> bool:
        return min(self.expires_at_s, self.ends_at_s) <= now_s

    def needs_check(self, now_s: float) -> bool:
        return self.checked_at_s < now_s - MAX_ROLE_AGE_S

    def next_expiry_s(self, now_s: float, ttl_s: int) -> int:
        return min(int(now_s) + ttl_s, self.ends_at_s)

    def needs_extension(self, now_s: float, ttl_s: int) -> bool:
        """Return whether a use now would extend it by more than a hundredth of ``ttl_s``."""
        return self.expires_at_s < self.next_expiry_s(now_s, ttl_s) - ttl_s / 100


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

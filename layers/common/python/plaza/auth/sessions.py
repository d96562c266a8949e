"""What a session is. No I/O."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass

TOUCH_EVERY_S = 60
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody is signed in until ``expires_at_s`` (seconds since 1970), longer with each use."""

    user_id: int
    role: str
    expires_at_s: int

    def is_over(self, now_s: float) -> bool:
        """True when it has expired."""
        return self.expires_at_s <= now_s

    def wants_touch(self, now_s: float, ttl_s: int) -> bool:
        """True when its end was last moved more than a minute ago."""
        return self.expires_at_s < now_s + ttl_s - TOUCH_EVERY_S


def make_token() -> str:
    """A token of 256 random bits; it is given out once and stored nowhere."""
    return secrets.token_urlsafe(32)


def hash_token(token: str) -> bytes:
    """The SHA-256 of a token: what is stored of it. 256 random bits need no salt."""
    return hashlib.sha256(token.encode()).digest()


def read_bearer(header: str) -> str | None:
    """The token in an Authorization header, None when it can't be one of ours."""
    match = _BEARER.fullmatch(header.strip())
    if match is None or not _TOKEN.fullmatch(match[1]):
        return None
    return match[1]

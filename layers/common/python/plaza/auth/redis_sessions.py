"""Sessions in Redis, in front of MySQL:

session:<SHA-256 of the token, hex>  string  <user id>:<role>:<expires at, s since 1970>
"""

from __future__ import annotations

import time

from plaza.auth.sessions import Session
from plaza.infra import redis

_MOST_TTL_S = 3600


def _key(token_sha256: bytes) -> str:
    return f"session:{token_sha256.hex()}"


def read(token_sha256: bytes) -> Session | None:
    """The session as it was kept, None when it wasn't. Raises RedisDown."""
    said = redis.execute("GET", _key(token_sha256))
    if not said:
        return None
    user_id, role, expires_at_s = said.split(":")
    return Session(int(user_id), role, int(expires_at_s))


def keep(token_sha256: bytes, session: Session) -> None:
    """Keep a session for an hour, or until it ends. Raises RedisDown."""
    left_s = max(1, min(_MOST_TTL_S, session.expires_at_s - int(time.time())))
    value = f"{session.user_id}:{session.role}:{session.expires_at_s}"
    redis.execute("SET", _key(token_sha256), value, "EX", left_s)

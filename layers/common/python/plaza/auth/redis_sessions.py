"""Sessions in Redis, in front of MySQL:

{<shard>}:session:<SHA-256 of the token, hex>  string  <user id>:<role>:<times>

The times are when it expires, when it ends and when MySQL was last read, seconds since 1970.

A session that was ended leaves its end in this place, which nothing overwrites: somebody may have
read the session from MySQL before, and want to keep it only now.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plaza.auth.sessions import Session
from plaza.infra import clock, redis
from plaza.infra.limits import Bucket
from plaza.infra.lua import load_script
from plaza.infra.shards import shard_of

MAX_TTL_S = 3600
ENDED_TTL_S = 2 * MAX_TTL_S
# For a token that has no session: no request that still knows one lasts as long.
NO_SESSION_TTL_S = 60
_END_MARKER = "0:ended:0:0:0"  # as a session, it is over
_STORE = load_script(Path(__file__).with_name("lua") / "store_session.lua")


def session_key(token_sha256: bytes) -> str:
    """Where the session of a token is."""
    name = f"session:{token_sha256.hex()}"
    return f"{{{shard_of(name)}}}:{name}"


def read(token_sha256: bytes) -> Session | None:
    """The session as it was kept, None when it wasn't; one that is over when it was ended.

    Raises RedisDown.
    """
    return _parse_session(redis.execute("GET", session_key(token_sha256)))


def read_and_take(token_sha256: bytes, bucket: Bucket | None) -> tuple[Session | None, int]:
    """As ``read``, and a token taken of ``bucket``: 0, or in how many milliseconds there is one.

    One round trip. Raises RedisDown.
    """
    taking = [bucket.acquire_call] if bucket else []
    *waits, value = redis.run_all(taking, [("GET", session_key(token_sha256))])
    return _parse_session(value), int(waits[0]) if waits else 0


def store(token_sha256: bytes, session: Session) -> None:
    """Keep a session for an hour, or until it expires; not if it was ended. Raises RedisDown."""
    left_s = max(1, min(MAX_TTL_S, session.expires_at_s - int(clock.now_s())))
    times = (session.expires_at_s, session.ends_at_s, session.checked_at_s)
    value = ":".join(str(part) for part in (session.user_id, session.role, *times))
    redis.run(_STORE, (session_key(token_sha256),), (value, left_s, _END_MARKER))


def mark_ended(token_sha256s: Sequence[bytes], ttl_s: int) -> None:
    """They have ended, and for ``ttl_s`` nothing brings them back. One round trip.

    Raises RedisDown.
    """
    redis.pipeline([("SET", session_key(sha), _END_MARKER, "EX", ttl_s) for sha in token_sha256s])


def _parse_session(value: str | None) -> Session | None:
    if not value:
        return None
    user_id, role, *times = value.split(":")
    return Session(int(user_id), role, *map(int, times))

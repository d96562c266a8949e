"""Sessions cached in Redis. Each call is one round trip.

auth{<shard>}:session:<SHA-256 of the token, hex>  string  <user id>:<role>:<times> <signature>

The times are its expiry, its absolute end and the last read of MySQL, in seconds since 1970. The
signature is of the token's hash and the rest of the value. A value without a valid one is a miss,
so write access to Redis alone opens no session. An ended session is replaced by a marker that
``store`` does not overwrite, because another process may store what it read from MySQL earlier;
the marker needs no signature.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plaza.core.switches import refresh as switch_refresh
from plaza.infra.aws.secrets import SecretsDown
from plaza.infra.http import signatures
from plaza.infra.http.limits import Bucket, Quota
from plaza.infra.redis import redis
from plaza.infra.redis.scripts import load_script
from plaza.infra.redis.shards import shard_of
from plaza.infra.runtime import clock
from plaza.infra.runtime.codec import Codec
from plaza.people.auth.sessions import MAX_CACHED_S, Session

# For a token without a session: longer than any request that may have read one earlier.
NO_SESSION_TTL_S = 60
_END_MARKER = "0:ended:0:0:0"  # parses as a session that is over
_PURPOSE = "session"
_STORE = load_script(Path(__file__).with_name("lua") / "store_session.lua")


_CACHED_FIELDS = 5


def _decode(text: str) -> Session:
    user_id, role, expires_at_s, ends_at_s, checked_at_s, *_ = text.split(":")
    return Session(int(user_id), role, int(expires_at_s), int(ends_at_s), int(checked_at_s))


def _encode(session: Session) -> str:
    return ":".join(map(str, session[:_CACHED_FIELDS]))


SESSION: Codec[Session] = Codec("sessions", _encode, _decode)


def session_key(token_sha256: bytes) -> str:
    name = f"session:{token_sha256.hex()}"
    return f"auth{{{shard_of(name)}}}:{name}"


def read(token_sha256: bytes) -> Session | None:
    """Return the cached session, which is over if it was ended, or None. Raises RedisDown."""
    return _verify(token_sha256, redis.execute("GET", session_key(token_sha256)))


def read_and_take(
    token_sha256: bytes, bucket: Bucket | None
) -> tuple[Session | None, int, Quota | None]:
    """Read a session and take from ``bucket``; return (session, the wait in ms, what is left).

    Refreshes the switches if they are due. Raises RedisDown.
    """
    calls = [bucket.acquire_call] if bucket else []
    *replies, value = switch_refresh.run_all(calls, [("GET", session_key(token_sha256))])
    session = _verify(token_sha256, value)
    return (session, *bucket.read_reply(replies[0])) if bucket else (session, 0, None)


def store(token_sha256: bytes, session: Session) -> None:
    """Cache a session for 1 h or until it expires, unless it was ended, or Secrets Manager is
    unavailable. Raises RedisDown."""
    value = SESSION.encode(session)
    try:
        mac = signatures.sign(_PURPOSE, _signed_text(token_sha256, value))
    except SecretsDown:
        return
    left_s = max(1, min(MAX_CACHED_S, session.expires_at_s - int(clock.now_s())))
    redis.run(_STORE, (session_key(token_sha256),), (f"{value} {mac}", left_s, _END_MARKER))


def mark_ended(token_sha256s: Sequence[bytes], ttl_s: int) -> None:
    """End cached sessions, and do not cache them again for ``ttl_s``. Raises RedisDown."""
    redis.pipeline([("SET", session_key(sha), _END_MARKER, "EX", ttl_s) for sha in token_sha256s])


def _verify(token_sha256: bytes, stored: str | None) -> Session | None:
    """Return the session in a value of Redis, None for one that is not signed."""
    if stored is None or stored == _END_MARKER:
        return SESSION.read(stored)
    value, _, mac = stored.partition(" ")
    try:
        is_signed = signatures.is_signed(_PURPOSE, _signed_text(token_sha256, value), mac)
    except SecretsDown:
        is_signed = False
    return SESSION.read(value) if is_signed else None


def _signed_text(token_sha256: bytes, value: str) -> str:
    return f"{token_sha256.hex()} {value}"

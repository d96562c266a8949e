"""Sessions cached in Redis. Each call is one round trip.

{<shard>}:session:<SHA-256 of the token, hex>      string  <user id>:<role>:<times>
{<shard>}:session_mac:<SHA-256 of the token, hex>  string  signature of the key and that value

The times are its expiry, its absolute end and the last read of MySQL, in seconds since 1970: as
many as the version before takes, which also takes no signature in the value. A value without its
signature is a miss, so write access to Redis alone opens no session. An ended session is
replaced by a marker that ``store`` does not overwrite, because another process may store what it
read from MySQL earlier; the marker needs no signature.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plaza.auth.sessions import MAX_CACHED_S, Session
from plaza.infra.aws.secrets import SecretsDown
from plaza.infra.http import signatures
from plaza.infra.http.limits import Bucket, Quota
from plaza.infra.redis import redis
from plaza.infra.redis.scripts import load_script
from plaza.infra.redis.shards import shard_of
from plaza.infra.runtime import clock
from plaza.infra.runtime.codec import Codec
from plaza.switches import refresh as switch_refresh

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
    return f"{{{shard_of(name)}}}:{name}"


def mac_key(token_sha256: bytes) -> str:
    """Return the key of the signature, in the slot of the session."""
    shard = shard_of(f"session:{token_sha256.hex()}")
    return f"{{{shard}}}:session_mac:{token_sha256.hex()}"


def _keys_of(token_sha256: bytes) -> tuple[str, str]:
    return session_key(token_sha256), mac_key(token_sha256)


def read(token_sha256: bytes) -> Session | None:
    """Return the cached session, which is over if it was ended, or None. Raises RedisDown."""
    return _verify(token_sha256, redis.pipeline([("GET", key) for key in _keys_of(token_sha256)]))


def read_and_take(
    token_sha256: bytes, bucket: Bucket | None
) -> tuple[Session | None, int, Quota | None]:
    """Read a session and take from ``bucket``; return (session, the wait in ms, what is left).

    Refreshes the switches if they are due. Raises RedisDown.
    """
    calls = [bucket.acquire_call] if bucket else []
    commands = [("GET", key) for key in _keys_of(token_sha256)]
    *replies, value, mac = switch_refresh.run_all(calls, commands)
    session = _verify(token_sha256, (value, mac))
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
    redis.run(_STORE, _keys_of(token_sha256), (value, left_s, _END_MARKER, mac))


def mark_ended(token_sha256s: Sequence[bytes], ttl_s: int) -> None:
    """End cached sessions, and do not cache them again for ``ttl_s``. Raises RedisDown."""
    redis.pipeline([("SET", session_key(sha), _END_MARKER, "EX", ttl_s) for sha in token_sha256s])


def _verify(token_sha256: bytes, replies: Sequence[str | None]) -> Session | None:
    """Return the session in a value and its signature, None for one that is not signed."""
    value, mac = replies
    if value is None or value == _END_MARKER:
        return SESSION.read(value)
    try:
        is_signed = bool(mac) and signatures.is_signed(
            _PURPOSE, _signed_text(token_sha256, value), str(mac)
        )
    except SecretsDown:
        is_signed = False
    return SESSION.read(value) if is_signed else None


def _signed_text(token_sha256: bytes, value: str) -> str:
    return f"{token_sha256.hex()} {value}"

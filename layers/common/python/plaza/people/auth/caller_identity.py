"""Identify the caller of a request and apply its rate limit.

A user has a token bucket for each group of routes. A caller without a valid session (no token, or
a malformed, invented, expired or ended one) takes from the bucket of the network. This process
caches the owners of tokens, so that one round trip reads the session and takes from the owner's
bucket. While Redis is unavailable, no caller is limited.

The switches of this process are refreshed in the same round trip when they are due.

A key of a server (``sk_...``) is not a session: ``server_caller`` identifies it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plaza.core.switches import current as current_switches
from plaza.core.switches import refresh as switch_refresh
from plaza.infra.http import limits
from plaza.infra.http.callers import Caller
from plaza.infra.http.limits import Bucket, anonymous_bucket
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.lazy_modules import LazyModule
from plaza.infra.runtime.observability import error_fields, record
from plaza.infra.runtime.process import LocalCache
from plaza.people.auth import redis_sessions
from plaza.people.auth.session_lookup import resolve_session
from plaza.people.auth.sessions import Session, hash_token, parse_bearer
from plaza.people.auth.settings import auth_settings

if TYPE_CHECKING:
    from plaza.people.auth import server_caller
else:  # most processes get no key
    server_caller = LazyModule("plaza.people.auth.server_caller")

_SERVER_KEY = "bearer sk_"
_READS_BY_POST = {"POST /reactions/query"}  # reads that need a body
FRESH_ROUTES = frozenset(
    f"{method} {path}"
    for method, path in (
        ("DELETE", "/auth/phone"),
        ("DELETE", "/passkeys/{passkey_id}"),
        ("DELETE", "/users/me"),
        ("DELETE", "/users/{user_id}"),
        ("GET", "/users/{user_id}/export"),
        ("POST", "/ops/server-keys"),
        ("POST", "/passkeys"),
    )
)
"""Routes that need a sign-in of the last minutes: they read its time from MySQL."""

# Hash of a token -> user id. Used only to choose the bucket.
_owners: LocalCache[bytes, int] = LocalCache(max_entries=10_000)


def identify(header: str | None, address: str, route: str, acts_for: str | None = None) -> Caller:
    """Return the caller that sends this Authorization header to ``route``, and its rate limit.
    ``acts_for``: the header Plaza-User, which only a key of a server may send.

    One round trip to Redis; one more for a token whose owner is not cached. Raises what
    ``server_caller.identify`` does.
    """
    is_key = header is not None and header[: len(_SERVER_KEY)].lower() == _SERVER_KEY
    if header is not None and is_key and parse_bearer(header) is None:  # a token may begin so, too
        return server_caller.identify(header, address, route, acts_for, _take)
    if acts_for is not None:
        return _take(anonymous_bucket(address), Caller(refusal="no key"))
    if header is None:
        return _take(anonymous_bucket(address), Caller())
    token = parse_bearer(header)
    if token is None:
        return _take(anonymous_bucket(address), Caller(refusal="malformed"))
    sha = hash_token(token)
    owner_id = _owners.get(sha)
    bucket = None if owner_id is None else bucket_of_user(owner_id, route)
    try:
        cached, wait_ms, quota = redis_sessions.read_and_take(sha, bucket)
    except RedisDown as error:
        limits.record_limit_skipped(error)
        return _resolve(sha, None)
    # A token that Redis lacks may be invented, so its read of MySQL is limited for the network.
    is_limited_by_network = cached is None and bucket is None
    limited = Caller(wait_ms=wait_ms, quota=quota, bucket=bucket)
    if is_limited_by_network:
        limited = _take(anonymous_bucket(address), limited)
    if limited.wait_ms:
        return limited
    if cached is not None and route in FRESH_ROUTES and not cached.is_over(clock.now_s()):
        cached = None
    caller = _resolve(sha, cached)._replace(quota=limited.quota, bucket=limited.bucket)
    if caller.user_id is None:
        _owners.drop(sha)
        if is_limited_by_network:
            return caller
        return _take(anonymous_bucket(address), caller)
    if bucket is not None:
        return caller
    _owners.put(sha, caller.user_id)
    return _take(bucket_of_user(caller.user_id, route), caller)


def identify_poll(_: str | None, address: str, __: str) -> Caller:
    """Return an anonymous caller, limited by the bucket of polls for its network: as ``identify``,
    for routes that read no token and that screens call all the time. One round trip."""
    return _take(limits.polls_bucket(address), Caller())


def bucket_of_user(user_id: int, route: str) -> Bucket:
    """Return the bucket of a user for ``route``, such as ``PUT /posts/{post_id}/likes/me``."""
    config, switches = auth_settings(), current_switches()
    if route.startswith("GET ") or route in _READS_BY_POST:
        bucket = Bucket("reads", str(user_id), config.reads_per_s, config.reads_burst)
        return bucket.scaled(switches.reads_factor)
    bucket = Bucket("writes", str(user_id), config.writes_per_s, config.writes_burst)
    return bucket.scaled(switches.writes_factor)


def _take(bucket: Bucket, caller: Caller) -> Caller:
    """Take a token from ``bucket``, and return ``caller`` limited by it; not limited while Redis is
    unavailable. Refreshes the switches if they are due. One round trip."""
    try:
        [reply] = switch_refresh.run_all([bucket.acquire_call])
    except RedisDown as error:
        limits.record_limit_skipped(error)
        return caller._replace(quota=None)
    wait_ms, quota = bucket.read_reply(reply)
    return caller._replace(wait_ms=wait_ms, quota=quota, bucket=bucket)


def _resolve(sha: bytes, cached: Session | None) -> Caller:
    try:
        session = resolve_session(sha, cached)
    except Unavailable as error:
        record("session_unchecked", {"sessions_unchecked": 1}, **error_fields(error))
        return Caller(refusal="unavailable")
    if session is None:
        return Caller(refusal="unknown")
    return Caller(session.user_id, session.role, signed_in_at_s=session.signed_in_at_s)

"""Who calls, and may they now: what is asked before each request.

A user has a bucket of tokens for each group of routes. A caller without a valid session (no token,
a malformed, invented, expired or ended one) takes from the bucket of the network. The bucket is
taken from in the round trip that reads the session: this process remembers whose tokens it saw.
While Redis is unavailable, no caller is limited.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from plaza.auth import redis_sessions
from plaza.auth.session_lookup import resolve_session
from plaza.auth.sessions import Session, hash_token, parse_bearer
from plaza.infra import limits
from plaza.infra.errors import Unavailable
from plaza.infra.limits import Bucket, anonymous_bucket
from plaza.infra.observability import error_fields, record
from plaza.infra.process import LocalCache
from plaza.infra.redis import RedisDown
from plaza.infra.settings import settings

_READS_BY_POST = {"POST /reactions/query"}  # reads that need a body

# Whose token it is, by its hash. It decides nothing but whose bucket is asked.
_owners: LocalCache[bytes, int] = LocalCache(max_entries=10_000)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: a session, or why there is none (``malformed``, ``unknown``, ``unavailable``).

    With neither it is anybody. ``wait_ms`` above 0: they call too often, and may again then.
    """

    session: Session | None = None
    refusal: str | None = None
    wait_ms: int = 0


def identify(header: str | None, address: str, route: str) -> Caller:
    """Who sends this Authorization header to ``route``, and whether they may now.

    Round trips to Redis: one; one more for a token that this process has not seen lately.
    """
    network = anonymous_bucket(address)
    if header is None:
        return Caller(wait_ms=limits.acquire_if_up(network))
    token = parse_bearer(header)
    if token is None:
        return Caller(refusal="malformed", wait_ms=limits.acquire_if_up(network))
    sha = hash_token(token)
    owner_id = _owners.get(sha)
    asked = None if owner_id is None else bucket_of_user(owner_id, route)
    try:
        cached, wait_ms = redis_sessions.read_and_take(sha, asked)
    except RedisDown as error:
        limits.record_limit_skipped(error)
        return _resolve(sha, None)
    # A token that Redis does not know may be any text, so MySQL is asked at the network's rate.
    was_unknown = cached is None and asked is None
    if was_unknown:
        wait_ms = limits.acquire_if_up(network)
    if wait_ms:
        return Caller(wait_ms=wait_ms)
    caller = _resolve(sha, cached)
    if caller.session is None:
        _owners.drop(sha)
        return caller if was_unknown else replace(caller, wait_ms=limits.acquire_if_up(network))
    if asked is not None:
        return caller
    _owners.put(sha, caller.session.user_id)
    of_user = bucket_of_user(caller.session.user_id, route)
    return replace(caller, wait_ms=limits.acquire_if_up(of_user))


def bucket_of_user(user_id: int, route: str) -> Bucket:
    """What a user may ask of ``route`` (``PUT /posts/{post_id}/likes/me``) and of its group."""
    config = settings()
    if route.startswith("GET ") or route in _READS_BY_POST:
        return Bucket("reads", str(user_id), config.reads_per_s, config.reads_burst)
    return Bucket("writes", str(user_id), config.writes_per_s, config.writes_burst)


def _resolve(sha: bytes, cached: Session | None) -> Caller:
    try:
        session = resolve_session(sha, cached)
    except Unavailable as error:
        record("session_unchecked", {"sessions_unchecked": 1}, **error_fields(error))
        return Caller(refusal="unavailable")
    return Caller(session) if session else Caller(refusal="unknown")

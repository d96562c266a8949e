"""Who calls, and may they now: what is asked before each request.

A user has a bucket of tokens for each group of routes; who has no session has that of where they
are. It is taken from in the round trip that asks for the session: this process remembers whose
tokens it saw. Redis away: everybody may.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from plaza.auth import redis_sessions
from plaza.auth.finding import complete
from plaza.auth.sessions import Session, hash_token, read_bearer
from plaza.infra import limits
from plaza.infra.errors import Unavailable
from plaza.infra.limits import Bucket, bucket_of_address, bucket_of_user
from plaza.infra.observability import cause, record
from plaza.infra.redis import RedisDown

_MOST_REMEMBERED = 10_000

# Whose token it is, by its hash, oldest use first. It decides nothing but whose bucket is asked.
_owners: OrderedDict[bytes, int] = OrderedDict()


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
    anybody = bucket_of_address(address)
    if header is None:
        return Caller(wait_ms=_take(anybody))
    token = read_bearer(header)
    if token is None:
        return Caller(refusal="malformed", wait_ms=_take(anybody))
    sha = hash_token(token)
    owner_id = _owners.get(sha)
    asked = None if owner_id is None else bucket_of_user(owner_id, route)
    try:
        kept, wait_ms = redis_sessions.read_and_take(sha, asked)
    except RedisDown as error:
        _count_unchecked(error)
        return _complete(sha, None)
    if kept is None and asked is None:
        wait_ms = _take(anybody)  # before MySQL is asked: it may be any text
    if wait_ms:
        return Caller(wait_ms=wait_ms)
    caller = _complete(sha, kept)
    if caller.session is None:
        _owners.pop(sha, None)
    elif asked is None:
        _remember(sha, caller.session.user_id)
        return Caller(caller.session, wait_ms=_take(bucket_of_user(caller.session.user_id, route)))
    else:
        _owners.move_to_end(sha)
    return caller


def forget_owners() -> None:
    """Forget whose tokens this process saw."""
    _owners.clear()


def _complete(sha: bytes, kept: Session | None) -> Caller:
    try:
        session = complete(sha, kept)
    except Unavailable as error:
        record("session_unchecked", {"sessions_unchecked": 1}, **cause(error))
        return Caller(refusal="unavailable")
    return Caller(session) if session else Caller(refusal="unknown")


def _take(bucket: Bucket) -> int:
    try:
        return limits.take(bucket)
    except RedisDown as error:
        _count_unchecked(error)
        return 0


def _count_unchecked(error: RedisDown) -> None:
    record("limit_unchecked", {"limits_unchecked": 1}, **cause(error))


def _remember(sha: bytes, user_id: int) -> None:
    _owners[sha] = user_id
    if len(_owners) > _MOST_REMEMBERED:
        _owners.popitem(last=False)

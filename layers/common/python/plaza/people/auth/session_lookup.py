"""Look up the session of a token in Redis, the cache, and MySQL, the record."""

from __future__ import annotations

from contextlib import suppress

from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock
from plaza.people.auth import mysql_store, redis_sessions
from plaza.people.auth.sessions import Session, hash_token
from plaza.people.auth.settings import auth_settings


def find_session(token: str) -> Session | None:
    """Return the session of a token and extend it; None if the token has none.

    Its role is at most ``MAX_ROLE_AGE_S`` old. Works while Redis is unavailable; while MySQL is,
    only for sessions cached in Redis, for at most an hour. Raises MysqlDown.
    """
    sha = hash_token(token)
    try:
        cached = redis_sessions.read(sha)
    except RedisDown:
        cached = None
    return resolve_session(sha, cached)


def resolve_session(sha: bytes, session: Session | None) -> Session | None:
    """As ``find_session``, given the session that Redis has cached. Raises MysqlDown."""
    now_s = clock.now_s()
    if session is None:
        session = _read(sha)
    elif not session.is_over(now_s) and session.needs_check(now_s):
        session = _check(sha, session)
    if session is None or session.is_over(now_s):
        return None
    if session.needs_extension(now_s, auth_settings().session_ttl_s):
        return _extend(sha, session, now_s)
    return session


def _read(sha: bytes) -> Session | None:
    session = mysql_store.read(sha, auth_settings().session_max_age_s)
    if session is not None:
        with suppress(RedisDown):
            redis_sessions.store(sha, session)
    return session


def _check(sha: bytes, session: Session) -> Session | None:
    """Return the session as MySQL has it now; ``session`` while MySQL is unavailable."""
    try:
        stored = _read(sha)
    except MysqlDown:
        return session
    if stored is None:
        _mark_ended(sha)
    return stored


def _extend(sha: bytes, session: Session, now_s: float) -> Session | None:
    """Return the extended session; None if MySQL no longer has it."""
    expires_at_s = session.next_expiry_s(now_s, auth_settings().session_ttl_s)
    extended = session._replace(expires_at_s=expires_at_s)
    with suppress(MysqlDown):  # the next use tries again
        if not mysql_store.extend(sha, expires_at_s) and not _read(sha):
            _mark_ended(sha)
            return None
        with suppress(RedisDown):
            redis_sessions.store(sha, extended)
    return extended


def _mark_ended(sha: bytes) -> None:
    with suppress(RedisDown):
        redis_sessions.mark_ended([sha], redis_sessions.NO_SESSION_TTL_S)

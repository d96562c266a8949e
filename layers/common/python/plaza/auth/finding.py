"""Finding the session of a token: Redis stands in front, MySQL is the record."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

from plaza.auth import mysql_sessions, redis_sessions
from plaza.auth.sessions import Session, hash_token
from plaza.infra.mysql import MysqlDown
from plaza.infra.redis import RedisDown
from plaza.infra.settings import settings


def find_session(token: str) -> Session | None:
    """The session of a token, its end moved if that was over a minute ago; None if there is none.

    Works while Redis is away. While MySQL is, it works for what Redis holds. Raises MysqlDown.
    """
    sha = hash_token(token)
    try:
        kept = redis_sessions.read(sha)
    except RedisDown:
        kept = None
    return complete(sha, kept)


def complete(sha: bytes, session: Session | None) -> Session | None:
    """As ``find_session``, when Redis has said what it knows of the token. Raises MysqlDown."""
    now_s = time.time()
    if session is None:
        session = mysql_sessions.read(sha)
        if session is not None:
            with suppress(RedisDown):
                redis_sessions.keep(sha, session)
    if session is None or session.is_over(now_s):
        return None
    ttl_s = settings().session_ttl_s
    if session.wants_touch(now_s, ttl_s):
        return _touch(sha, replace(session, expires_at_s=int(now_s) + ttl_s))
    return session


def _touch(sha: bytes, session: Session) -> Session | None:
    """The session, its end moved; None when MySQL, asked for that, has none any more."""
    with suppress(MysqlDown):  # the next use tries again
        if not mysql_sessions.extend(sha, session.expires_at_s) and not mysql_sessions.read(sha):
            with suppress(RedisDown):
                redis_sessions.end_all([sha], redis_sessions.LATE_TTL_S)
            return None
        with suppress(RedisDown):
            redis_sessions.keep(sha, session)
    return session

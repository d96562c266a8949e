"""Who calls: sessions behind opaque tokens. MySQL is the record, Redis stands in front of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from plaza.auth import mysql_sessions, redis_sessions
from plaza.auth.sessions import Session, hash_token, make_token, read_bearer
from plaza.infra.mysql import MysqlDown
from plaza.infra.redis import RedisDown
from plaza.infra.settings import settings

__all__ = ["Session", "find_session", "open_session", "open_sessions", "read_bearer"]


def open_session(user_id: int, role: str = "user") -> str:
    """A new session's token. Raises MysqlDown."""
    return open_sessions([user_id], role)[0]


def open_sessions(user_ids: Sequence[int], role: str = "user") -> list[str]:
    """A token for each of ``user_ids``, in their order. One statement. Raises MysqlDown."""
    expires_at_s = int(time.time()) + settings().session_ttl_s
    tokens = [make_token() for _ in user_ids]
    mysql_sessions.insert(
        [
            (hash_token(token), Session(user_id, role, expires_at_s))
            for token, user_id in zip(tokens, user_ids, strict=True)
        ]
    )
    return tokens


def find_session(token: str) -> Session | None:
    """The session of a token, its end moved if that was over a minute ago; None if there is none.

    Works while Redis is away. While MySQL is, it works for what Redis holds. Raises MysqlDown.
    """
    sha, now_s = hash_token(token), time.time()
    try:
        session = redis_sessions.read(sha)
    except RedisDown:
        session = None
    if session is None:
        session = mysql_sessions.read(sha)
        if session is not None:
            with suppress(RedisDown):
                redis_sessions.keep(sha, session)
    if session is None or session.is_over(now_s):
        return None
    ttl_s = settings().session_ttl_s
    if session.wants_touch(now_s, ttl_s):
        session = replace(session, expires_at_s=int(now_s) + ttl_s)
        with suppress(RedisDown, MysqlDown):  # the next use tries again
            mysql_sessions.extend(sha, session.expires_at_s)
            redis_sessions.keep(sha, session)
    return session

"""Who calls: sessions behind opaque tokens. MySQL is the record, Redis stands in front of it.

How people get one is in ``signing_in``: the authorizer, which is asked each time, does not load it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from plaza.auth import mysql_sessions, redis_sessions
from plaza.auth.calling import Caller, identify
from plaza.auth.finding import find_session
from plaza.auth.sessions import Session, hash_token, make_token, read_bearer
from plaza.infra.errors import Unauthenticated
from plaza.infra.observability import record
from plaza.infra.settings import settings

__all__ = [
    "Caller",
    "Session",
    "end_all_sessions",
    "end_session",
    "end_sessions_of",
    "find_session",
    "identify",
    "open_session",
    "open_sessions",
    "read_bearer",
]


def open_session(user_id: int) -> str:
    """A new session's token. Raises MysqlDown."""
    return open_sessions([user_id])[0]


def open_sessions(user_ids: Sequence[int]) -> list[str]:
    """A token for each of ``user_ids``, in their order. One statement. Raises MysqlDown."""
    ttl_s = min(settings().session_ttl_s, settings().session_max_age_s)
    expires_at_s = int(time.time()) + ttl_s
    tokens = [make_token() for _ in user_ids]
    mysql_sessions.insert(
        [
            (hash_token(token), user_id, expires_at_s)
            for token, user_id in zip(tokens, user_ids, strict=True)
        ]
    )
    return tokens


def end_session(token: str) -> None:
    """The session of ``token`` is over, now and for good; if it was already, this makes sure of it.

    Raises MysqlDown, RedisDown: to be repeated then.
    """
    sha = hash_token(token)
    was_there = mysql_sessions.delete(sha)
    ttl_s = redis_sessions.ENDED_TTL_S if was_there else redis_sessions.LATE_TTL_S
    redis_sessions.end_all([sha], ttl_s)


def end_all_sessions(token: str) -> None:
    """Every session of the user of ``token`` is over.

    Their own is the last: whatever fails before, they can repeat it. Raises Unauthenticated,
    MysqlDown, RedisDown.
    """
    session = find_session(token)
    if session is not None:
        mysql_sessions.delete_all(session.user_id, _end_in_redis, own=hash_token(token))
    end_session(token)
    if session is None:
        raise Unauthenticated("This token is unknown or has expired")


def end_sessions_of(user_id: int, by: int) -> int:
    """End every session of a user on the order of the operator ``by``; how many there were.

    Safe to repeat. Raises MysqlDown, RedisDown: some may still work then, and a repeat ends them.
    """
    ended = mysql_sessions.delete_all(user_id, _end_in_redis)
    record("sessions_ended", user_id=user_id, by=by, ended=ended)
    return ended


def _end_in_redis(token_sha256s: Sequence[bytes]) -> None:
    redis_sessions.end_all(token_sha256s, redis_sessions.ENDED_TTL_S)

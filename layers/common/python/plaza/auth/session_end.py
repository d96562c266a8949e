"""Ending sessions: in MySQL, and at once in Redis, which stands in front of it."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.auth import mysql_store, redis_sessions
from plaza.auth.session_lookup import find_session
from plaza.auth.sessions import hash_token
from plaza.infra.errors import Unauthenticated
from plaza.infra.observability import record


def end_session(token: str) -> None:
    """The session of ``token`` is over, now and for good; if it was already, this makes sure of it.

    Raises MysqlDown, RedisDown: to be repeated then.
    """
    sha = hash_token(token)
    was_there = mysql_store.delete(sha)
    ttl_s = redis_sessions.ENDED_TTL_S if was_there else redis_sessions.NO_SESSION_TTL_S
    redis_sessions.mark_ended([sha], ttl_s)


def end_all_sessions(token: str) -> None:
    """Every session of the user of ``token`` is over.

    Their own is the last: whatever fails before, they can repeat it. Raises Unauthenticated,
    MysqlDown, RedisDown.
    """
    session = find_session(token)
    if session is not None:
        mysql_store.delete_all(session.user_id, _end_in_redis, own=hash_token(token))
    end_session(token)
    if session is None:
        raise Unauthenticated("This token is unknown or has expired")


def end_user_sessions(user_id: int, operator_id: int) -> int:
    """End every session of a user on the order of the operator ``operator_id``; how many there were.

    Safe to repeat. Raises MysqlDown, RedisDown: some may still work then, and a repeat ends them.
    """
    ended = mysql_store.delete_all(user_id, _end_in_redis)
    record("sessions_ended", user_id=user_id, operator_id=operator_id, ended=ended)
    return ended


def _end_in_redis(token_sha256s: Sequence[bytes]) -> None:
    redis_sessions.mark_ended(token_sha256s, redis_sessions.ENDED_TTL_S)

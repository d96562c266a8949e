"""End sessions in MySQL, and at once in the cache in Redis."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.auth import mysql_store, redis_sessions
from plaza.auth.session_lookup import find_session
from plaza.auth.sessions import hash_token
from plaza.infra.errors import Unauthenticated
from plaza.infra.observability import record


def end_session(token: str) -> None:
    """End the session of ``token``. Safe to repeat. Raises MysqlDown, RedisDown: call it again."""
    sha = hash_token(token)
    existed = mysql_store.delete(sha)
    ttl_s = redis_sessions.ENDED_TTL_S if existed else redis_sessions.NO_SESSION_TTL_S
    redis_sessions.mark_ended([sha], ttl_s)


def end_all_sessions(token: str) -> None:
    """End every session of the user of ``token``, its own last, so that the call can be repeated.

    Raises Unauthenticated, MysqlDown, RedisDown.
    """
    session = find_session(token)
    if session is not None:
        mysql_store.delete_all(session.user_id, _end_in_redis, own=hash_token(token))
    end_session(token)
    if session is None:
        raise Unauthenticated("This token is unknown or has expired; sign in again.")


def end_user_sessions(user_id: int, operator_id: int) -> int:
    """End every session of a user for the operator ``operator_id``; return how many.

    Safe to repeat. Raises MysqlDown, RedisDown: some sessions may still work until it is repeated.
    """
    ended = mysql_store.delete_all(user_id, _end_in_redis)
    record("sessions_ended", user_id=user_id, operator_id=operator_id, ended=ended)
    return ended


def erase(user_id: int) -> int:
    """End every session of an erased user; return how many. Raises MysqlDown, RedisDown."""
    return mysql_store.delete_all(user_id, _end_in_redis)


def _end_in_redis(token_sha256s: Sequence[bytes]) -> None:
    redis_sessions.mark_ended(token_sha256s, redis_sessions.ENDED_TTL_S)

"""End sessions in MySQL, then in the cache in Redis, before the caller gets an answer.

Several sessions expire in MySQL first. Their rows are the list of what Redis has to mark, and are
deleted afterwards, so that a repeat completes what an error or the end of a process left: until
then a session that Redis has cached is accepted for 60 s (``MAX_ROLE_AGE_S``), an hour without
MySQL, and never again.
"""

from __future__ import annotations

from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.errors import Unauthenticated
from plaza.infra.runtime.observability import record
from plaza.people.auth import mysql_passkeys, mysql_store, redis_sessions
from plaza.people.auth.session_lookup import find_session
from plaza.people.auth.sessions import KEPT_S, hash_token

_SESSIONS_AT_ONCE = 10_000


def end_session(token: str) -> None:
    """End the session of ``token``. Safe to repeat. Raises MysqlDown, RedisDown: call it again."""
    sha = hash_token(token)
    existed = mysql_store.delete(sha)
    redis_sessions.mark_ended([sha], KEPT_S if existed else redis_sessions.NO_SESSION_TTL_S)


def end_all_sessions(token: str) -> None:
    """End every session of the user of ``token``, in Redis its own last, so that the call can be
    repeated.

    Raises Unauthenticated, MysqlDown, RedisDown.
    """
    session = find_session(token)
    if session is not None:
        end_all_of_user(session.user_id, own=hash_token(token))
    end_session(token)
    if session is None:
        raise Unauthenticated("This token is unknown or has expired; sign in again.")


def end_user_sessions(user_id: int, operator_id: int) -> int:
    """End every session of a user for the operator ``operator_id``; return how many.

    Safe to repeat. Raises MysqlDown, RedisDown: some sessions may still work for a minute unless it
    is repeated.
    """
    ended = end_all_of_user(user_id)
    record("sessions_ended", user_id=user_id, operator_id=operator_id, ended=ended)
    return ended


def end_every_session(max_s: float) -> tuple[int, bool]:
    """End the sessions of all users, 10,000 at a time for about ``max_s``; return (how many,
    whether none is left). Those that Redis has cached end within a minute
    (``MAX_ROLE_AGE_S``). Raises MysqlDown."""
    deadline, ended = Deadline.in_s(max_s), 0
    while not deadline.has_passed:
        deleted = mysql_store.delete_some(_SESSIONS_AT_ONCE)
        ended += deleted
        if deleted < _SESSIONS_AT_ONCE:
            record("every_session_ended", ended=ended)
            return ended, True
    return ended, False


def erase(user_id: int) -> int:
    """Delete the passkeys and end every session of an erased user; return how many. Raises
    MysqlDown, RedisDown."""
    return mysql_passkeys.delete_of_user(user_id) + end_all_of_user(user_id)


def end_all_of_user(user_id: int, *, own: bytes | None = None) -> int:
    """End all sessions of a user, but ``own`` in MySQL only; return how many. Safe to repeat. Three
    statements and a round trip. Raises MysqlDown, RedisDown."""
    ended = mysql_store.expire_all(user_id, own=own)
    redis_sessions.mark_ended([sha for sha in ended if sha != own], KEPT_S)
    mysql_store.delete_all(ended)
    return len(ended)

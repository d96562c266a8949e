"""A user's own sessions: list them, and end one of them."""

from __future__ import annotations

from plaza.infra.runtime.errors import NotFound
from plaza.infra.runtime.observability import record
from plaza.people.auth import mysql_store, redis_sessions
from plaza.people.auth.sessions import KEPT_S, OwnSession
from plaza.people.auth.settings import auth_settings

MAX_LISTED = 100


class SessionMissing(NotFound):
    """The user has no such session."""


def list_sessions(user_id: int) -> list[OwnSession]:
    """Return the 100 newest open sessions of a user, the newest first. One statement. Raises
    MysqlDown."""
    return mysql_store.list_of_user(user_id, auth_settings().session_max_age_s, MAX_LISTED)


def end_session(user_id: int, name: str) -> None:
    """End a session of a user, in MySQL and then in Redis. After an error repeat it: the row stays
    until Redis has the mark. Three statements and a round trip. Raises SessionMissing, MysqlDown,
    RedisDown."""
    sha = mysql_store.find_of_user(user_id, name)
    if sha is None:
        raise SessionMissing(f"There is no session {name}.")
    mysql_store.expire(sha)
    redis_sessions.mark_ended([sha], KEPT_S)
    mysql_store.delete(sha)
    record("session_ended", user_id=user_id)

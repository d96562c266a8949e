"""Close accounts, so that a sign-in can open them again until they are erased."""

from __future__ import annotations

from contextlib import suppress

from plaza.core.targets import markers
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime.observability import record
from plaza.people.users import mysql_closed
from plaza.people.users.model import User
from plaza.people.users.mysql_closed import By, ClosedUser, close, find_unsettled, settle

__all__ = ["ClosedUser", "close", "find_unsettled", "reopen", "settle"]


def reopen(by: By, *login: str | int) -> User | None:
    """Open the account that was closed last with a login; return its user, None if there is none or
    its erasure begins within two minutes. One transaction and a round trip. Raises MysqlDown."""
    user = mysql_closed.reopen(by, login)
    if user is not None:
        record("account_reopened", {"accounts_reopened": 1}, user_id=user.id)
        with suppress(RedisDown):  # a marker that the user is missing expires soon
            markers.mark_created("user", user.id)
    return user

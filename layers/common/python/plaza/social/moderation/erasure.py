"""Delete the reports of an erased user."""

from __future__ import annotations

from plaza.infra.runtime.clock import Deadline
from plaza.social.moderation import mysql_store


def erase(user_id: int, _: Deadline) -> int:
    """Delete the reports that a user made; return how many. Reports of the user by others stay. One
    statement. Safe to repeat. Raises MysqlDown."""
    return mysql_store.delete_of_user(user_id)

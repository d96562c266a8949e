"""Delete what push messages have of an erased user."""

from __future__ import annotations

from plaza.push import mysql_store


def erase(user_id: int) -> int:
    """Delete subscriptions, preferences and the position; return how many rows. Three statements.
    Safe to repeat. Raises MysqlDown."""
    return mysql_store.delete_of_user(user_id)

"""Delete what push messages have of an erased user."""

from __future__ import annotations

from plaza.infra.runtime.clock import Deadline
from plaza.notifications.push import mysql_store


def hide(user_id: int, _: Deadline) -> int:
    """End the pushes to all browsers of a closed account; return how many. One statement. Safe to
    repeat. Raises MysqlDown."""
    return mysql_store.delete_subscriptions_of_user(user_id)


def erase(user_id: int, _: Deadline) -> int:
    """Delete subscriptions, preferences and the sequence; return how many rows. Three statements.
    Safe to repeat. Raises MysqlDown."""
    return mysql_store.delete_of_user(user_id)

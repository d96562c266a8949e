"""Remove an erased user from all shops."""

from __future__ import annotations

from plaza.commerce.shops import mysql_members
from plaza.infra.runtime.clock import Deadline


def erase(user_id: int, _: Deadline) -> int:
    """Remove a user from all shops, also as their last owner; return from how many. One statement.
    Safe to repeat. Raises MysqlDown."""
    return mysql_members.delete_of_user(user_id)

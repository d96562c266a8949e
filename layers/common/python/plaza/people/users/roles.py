"""Roles of users, which an operator gives and takes: what the routes of the API admit."""

from __future__ import annotations

from typing import Literal

from plaza.infra.derived.ids import new_id
from plaza.infra.runtime.observability import record
from plaza.people.users import mysql_users
from plaza.people.users.model import UserMissing

Role = Literal["user", "moderator", "sales", "operator", "admin"]
"""A user has one."""


def read_role(user_id: int) -> str:
    """Return the role of a user. One statement. Raises UserMissing, MysqlDown."""
    role = mysql_users.read_role(user_id)
    if role is None:
        raise UserMissing(f"There is no user {user_id}.")
    return role


def set_role(user_id: int, role: Role) -> str:
    """Set the role of a user; return the one before. Sessions of a passkey have it within a minute.
    One transaction. Raises UserMissing, MysqlDown."""
    before = mysql_users.set_role(user_id, role)
    if before is None:
        raise UserMissing(f"There is no user {user_id}.")
    record("role_set", user_id=user_id, role=role, before=before)
    return before


def create_admin(nickname: str) -> int:
    """Create a user without a phone, with the role ``admin``; return the id.
    Raises RedisDown, MysqlDown."""
    user_id = new_id()
    mysql_users.insert(user_id, nickname, "admin")
    record("user_created", {"users_created": 1}, user_id=user_id, role="admin")
    return user_id

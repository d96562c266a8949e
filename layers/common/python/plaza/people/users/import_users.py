"""Store users of another system, with its ids and identities."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.core.targets import markers
from plaza.infra.mysql import mysql
from plaza.people.users import mysql_imports
from plaza.people.users.mysql_imports import ImportedUser


def import_users(users: Sequence[ImportedUser]) -> dict[int, str]:
    """Store users that do not exist; return id -> why a user was left out. One transaction of five
    statements and one round trip. Safe to repeat. Raises MysqlDown, RedisDown."""
    refused = mysql.run_in_transaction(lambda cursor: mysql_imports.insert(cursor, users))
    markers.mark_all_created([("user", user.id) for user in users if user.id not in refused])
    return refused

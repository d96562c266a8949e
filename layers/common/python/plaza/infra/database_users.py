"""The users of MySQL: each has the privileges that its functions need, and no others."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pymysql.err import MySQLError

from plaza.infra import mysql, secrets
from plaza.infra.settings import settings

_ROWS = "SELECT, INSERT, UPDATE, DELETE"
PRIVILEGES: Mapping[str, tuple[str, str]] = {
    "APP": (_ROWS, ""),
    "MIGRATOR": (f"{_ROWS}, CREATE, ALTER, DROP, INDEX, REFERENCES, LOCK TABLES", ""),
    "REPLICATION": ("SELECT, INSERT, UPDATE", "REPLICATION SLAVE, REPLICATION CLIENT"),
}
"""User -> its privileges on Plaza's tables, and on the server.

``PLAZA_MYSQL_<USER>_SECRET_ID`` is the secret with its login.
"""

BINLOG_HOURS = 24
_NO_PROCEDURE = 1305


def create_users() -> list[str]:
    """Create the users, and set the passwords of their secrets. Returns their names.

    Settings log in as an administrator. Safe to repeat: after a secret was rotated, this is what
    changes the password. Three statements a user. Raises SecretsDown, MysqlDown.
    """
    database = settings().mysql.database
    names = []
    for user, (on_tables, on_server) in PRIVILEGES.items():
        login = secrets.read_login(os.environ[f"PLAZA_MYSQL_{user}_SECRET_ID"])
        account = (login.username, login.password)
        mysql.write("CREATE USER IF NOT EXISTS %s@'%%' IDENTIFIED BY %s", account)
        mysql.write("ALTER USER %s@'%%' IDENTIFIED BY %s", account)
        mysql.write(f"GRANT {on_tables} ON `{database}`.* TO %s@'%%'", (login.username,))
        if on_server:
            mysql.write(f"GRANT {on_server} ON *.* TO %s@'%%'", (login.username,))
        names.append(login.username)
    return names


def keep_binlog() -> bool:
    """Let Aurora keep the binlog for ``BINLOG_HOURS``. Returns whether the server is Aurora."""
    try:
        mysql.write(
            "CALL mysql.rds_set_configuration('binlog retention hours', %s)", (BINLOG_HOURS,)
        )
    except MySQLError as error:
        if error.args[0] != _NO_PROCEDURE:
            raise
        return False
    return True

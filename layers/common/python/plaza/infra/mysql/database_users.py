"""The users of MySQL: each has the privileges that its functions need, and no others."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from secrets import token_hex

from pymysql.err import MySQLError

from plaza.infra.aws import secrets
from plaza.infra.aws.secrets import Login
from plaza.infra.mysql import driver, mysql
from plaza.infra.runtime.observability import record
from plaza.infra.runtime.settings import settings

_ROWS = "SELECT, INSERT, UPDATE, DELETE"
PRIVILEGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "APP": (_ROWS, ()),
    "MIGRATOR": (f"{_ROWS}, CREATE, ALTER, DROP, INDEX, REFERENCES, LOCK TABLES", ()),
    "REPLICATION": ("SELECT, INSERT, UPDATE", ("REPLICATION SLAVE", "REPLICATION CLIENT")),
    # CONNECTION_ADMIN has a blank in MariaDB, which ignores comments for MySQL 8.
    "OPERATOR": (
        f"{_ROWS}, INDEX",
        ("PROCESS", "REPLICATION CLIENT", "/*M! CONNECTION ADMIN */ /*!80000 CONNECTION_ADMIN */"),
    ),
}
"""User -> its privileges on Plaza's tables, and on the server.

``PLAZA_MYSQL_<USER>_SECRET_ID`` is the secret with its login.
"""

BINLOG_HOURS = 24
_SECOND = "_2"  # of a user's two names


def create_users() -> list[str]:
    """Create the users, and set the passwords of their secrets. Returns their names.

    Settings log in as an administrator. Safe to repeat. Three statements a user, and one for each
    privilege on the server.
    Raises SecretsDown, MysqlDown.
    """
    names = []
    for user in PRIVILEGES:
        login = secrets.read_login(os.environ[f"PLAZA_MYSQL_{user}_SECRET_ID"])
        _create_user(user, login)
        names.append(login.username)
    return names


def user_of(secret_id: str) -> str:
    """Return the user whose login a secret is, a key of ``PRIVILEGES``. Raises ValueError."""
    for user in PRIVILEGES:
        if os.environ[f"PLAZA_MYSQL_{user}_SECRET_ID"] == secret_id:
            return user
    raise ValueError(f"{secret_id} is the secret of no user")


def make_login(current: str) -> str:
    """Return the secret of the other of a user's two names, with a new password.

    They take turns: connections and processes with the current login keep it until the rotation
    after the next one.
    """
    name = json.loads(current)["username"]
    other = name.removesuffix(_SECOND) if name.endswith(_SECOND) else name + _SECOND
    return json.dumps({"username": other, "password": token_hex(20)})


def set_login(user: str, secret: str) -> None:
    """Give a login the privileges of ``user``, and try it. Raises MysqlDown if it is refused."""
    login = secrets.parse_login(secret)
    _create_user(user, login)
    mysql.check_login(login)


def _create_user(user: str, login: Login) -> None:
    on_tables, on_server = PRIVILEGES[user]
    account = (login.username, login.password)
    mysql.write("CREATE USER IF NOT EXISTS %s@'%%' IDENTIFIED BY %s", account)
    mysql.write("ALTER USER %s@'%%' IDENTIFIED BY %s", account)
    mysql.write(
        f"GRANT {on_tables} ON `{settings().mysql.database}`.* TO %s@'%%'", (login.username,)
    )
    for privilege in on_server:
        _grant_on_server(privilege, login.username)


def _grant_on_server(privilege: str, name: str) -> None:
    """Grant a privilege, or record that the administrator may not: a command of operators, or the
    binlog, lacks it then, which is no reason to roll a deploy back."""
    try:
        mysql.write(f"GRANT {privilege} ON *.* TO %s@'%%'", (name,))
    except (MySQLError, mysql.MysqlDown) as error:
        if not driver.means(error.__cause__ or error, driver.Meaning.NO_PRIVILEGE):
            raise
        record("privilege_refused", user=name, privilege=privilege)


def keep_binlog() -> bool:
    """Let Aurora keep the binlog for ``BINLOG_HOURS``. Returns whether the server is Aurora."""
    try:
        mysql.write(
            "CALL mysql.rds_set_configuration('binlog retention hours', %s)", (BINLOG_HOURS,)
        )
    except MySQLError as error:
        if not driver.means(error, driver.Meaning.NO_PROCEDURE):
            raise
        return False
    return True

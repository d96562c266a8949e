"""The users that a deploy creates in MySQL do their work, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pymysql
import pytest

from plaza.commerce.changes import follow_binlog, offset
from plaza.infra.aws import secrets
from plaza.infra.jobs.operator_commands import Refused
from plaza.infra.mysql import migrations, mysql
from plaza.infra.mysql.database_users import PRIVILEGES, create_users, keep_binlog
from plaza.infra.runtime.settings import settings
from plaza.operate.operator_commands import commands, mysql_server
from tests.support.plaza import World, forget

LOGINS = {
    "APP": secrets.Login("plaza_app", "app's secret"),
    "MIGRATOR": secrets.Login("plaza_migrator", "migrator's secret"),
    "REPLICATION": secrets.Login("plaza_replication", "replication's secret"),
    "OPERATOR": secrets.Login("plaza_operator", "operator's secret"),
}
DENIED = 1142, 1044, 1227, 1370


@pytest.fixture
def users(plaza: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The users exist; no others of these names did."""
    for user in LOGINS:
        monkeypatch.setenv(f"PLAZA_MYSQL_{user}_SECRET_ID", user)
    monkeypatch.setattr(secrets, "read_login", LOGINS.__getitem__)
    drop()
    assert create_users() == [login.username for login in LOGINS.values()]
    yield
    drop()


def drop() -> None:
    for login in LOGINS.values():
        mysql.write("DROP USER IF EXISTS %s@'%%'", (login.username,))


def url_of(user: str) -> str:
    address, login = settings().mysql, LOGINS[user]
    password = login.password.replace(" ", "%20").replace("'", "%27")
    return f"mysql://{login.username}:{password}@{address.host}:{address.port}/{address.database}"


@contextmanager
def logged_in(user: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this process be a function that logs in as ``user``."""
    with monkeypatch.context() as patch:
        patch.setenv("PLAZA_MYSQL_URL", url_of(user))
        forget()
        yield
    forget()


def is_refused(user: str, sql: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    with logged_in(user, monkeypatch):
        try:
            mysql.write(sql)
        except pymysql.err.MySQLError as error:
            return error.args[0] in DENIED
    return False


def test_the_functions_read_and_write_rows(users: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with logged_in("APP", monkeypatch):
        mysql.write("INSERT INTO user (id, nickname) VALUES (7, 'ada')")
        assert mysql.fetch_all("SELECT nickname FROM user WHERE id = 7") == [("ada",)]
        assert mysql.write("DELETE FROM user WHERE id = 7") == 1


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE a (a INT)",
        "ALTER TABLE user ADD a INT",
        "DROP TABLE user",
        "TRUNCATE TABLE user",
        "CREATE USER a",
        "SHOW MASTER STATUS",
        "SELECT user FROM mysql.user",
    ],
)
@pytest.mark.parametrize("user", ["APP", "REPLICATION", "OPERATOR"])
def test_a_user_of_functions_changes_no_schema(
    users: None, monkeypatch: pytest.MonkeyPatch, user: str, sql: str
) -> None:
    may = user in ("REPLICATION", "OPERATOR") and sql.startswith("SHOW")
    assert is_refused(user, sql, monkeypatch) is not may


def test_the_migrator_creates_no_users_and_reads_no_other_database(
    users: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_refused("MIGRATOR", "CREATE USER a", monkeypatch)
    assert is_refused("MIGRATOR", "SELECT user FROM mysql.user", monkeypatch)


def test_the_migrator_migrates_an_empty_database_and_maintains_the_log(
    users: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = "plaza_of_the_migrator"
    mysql.write(f"CREATE DATABASE {database}")
    try:
        on_tables = PRIVILEGES["MIGRATOR"][0]
        mysql.write(f"GRANT {on_tables} ON {database}.* TO %s@'%%'", (LOGINS["MIGRATOR"].username,))
        with logged_in("MIGRATOR", monkeypatch), monkeypatch.context() as patch:
            patch.setenv("PLAZA_MYSQL_URL", url_of("MIGRATOR").rpartition("/")[0] + f"/{database}")
            forget()
            assert migrations.apply_migrations()
            assert migrations.apply_migrations() == []
    finally:
        mysql.write(f"DROP DATABASE {database}")


def test_the_binlog_is_followed_with_the_user_of_the_replication(
    users: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with logged_in("REPLICATION", monkeypatch):
        follow_binlog.follow_changes()
        assert follow_binlog.follow_changes().lost is False


def test_an_operator_ends_a_transaction_of_another_user(
    users: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = LOGINS["APP"]
    other = mysql.connect_dedicated(
        user=login.username, password=login.password, database=settings().mysql.database
    )
    other.begin()
    with other.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID(), epoch FROM log_barrier FOR UPDATE")
        [(thread_id, _)] = cursor.fetchall()
    with logged_in("OPERATOR", monkeypatch):
        [listed] = mysql_server.list_transactions()
        assert listed["thread_id"] == thread_id
        mysql_server.end_transaction(thread_id)
        assert offset.list_logs()
    with pytest.raises(pymysql.err.MySQLError):
        other.query("SELECT 1")


def test_a_rotated_secret_becomes_the_password(
    users: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LOGINS, "APP", secrets.Login("plaza_app", "a newer one"))
    create_users()
    with logged_in("APP", monkeypatch):
        assert mysql.fetch_all("SELECT 1") == [(1,)]


def test_a_deploy_goes_on_when_the_administrator_may_not_grant_a_privilege(
    plaza: World,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Given an administrator with neither PROCESS nor CONNECTION ADMIN."""
    database = settings().mysql.database
    drop()
    mysql.write("CREATE USER bounded@'%%' IDENTIFIED BY 'one'", ())
    mysql.write("GRANT CREATE USER, REPLICATION SLAVE ON *.* TO bounded@'%%' WITH GRANT OPTION", ())
    mysql.write(f"GRANT ALL ON `{database}`.* TO bounded@'%%' WITH GRANT OPTION", ())
    for user in LOGINS:
        monkeypatch.setenv(f"PLAZA_MYSQL_{user}_SECRET_ID", user)
    monkeypatch.setattr(secrets, "read_login", LOGINS.__getitem__)
    monkeypatch.setitem(LOGINS, "ADMIN", secrets.Login("bounded", "one"))
    with logged_in("ADMIN", monkeypatch):
        monkeypatch.delitem(LOGINS, "ADMIN")
        assert create_users() == [login.username for login in LOGINS.values()]
        refused = [
            (line["user"], line["privilege"])
            for line in map(json.loads, capsys.readouterr().out.splitlines())
            if line.get("event") == "privilege_refused"
        ]
    assert [user for user, _ in refused] == ["plaza_replication"] + ["plaza_operator"] * 3
    with logged_in("OPERATOR", monkeypatch):
        assert mysql.fetch_all("SELECT COUNT(*) FROM log_barrier") == [(1,)]
        for request in (
            {"command": "list-transactions"},
            {"command": "end-transaction", "arguments": {"thread_id": "1"}},
            {"command": "show-binlog"},
        ):
            with pytest.raises(Refused, match="lacks a privilege"):
                commands.run(request | {"caller": "ada"})
    drop()
    mysql.write("DROP USER bounded@'%%'", ())


def test_a_server_that_is_not_aurora_keeps_its_binlog_as_configured(plaza: World) -> None:
    assert keep_binlog() is False

"""Migrations: applies each SQL file of plaza/migrations once, in order, forward only.

Code of the version before runs on the new schema while a deploy shifts traffic, and after a roll
back. So a migration only expands the schema, or removes what no version in use needs
(docs/operations.md, tests/unit/policy/test_migrations.py).
"""

from __future__ import annotations

import re
from pathlib import Path

from pymysql.constants import ER
from pymysql.err import MySQLError

from plaza.infra import mysql

FOLDER = Path(__file__).parent.parent / "migrations"
_COMMENT = re.compile(r"^--.*$", re.MULTILINE)
_END = re.compile(r";\s*$", re.MULTILINE)
_LOCK = "plaza-migrations"
_ALREADY_APPLIED = (ER.DUP_FIELDNAME, ER.DUP_KEYNAME, ER.CANT_DROP_FIELD_OR_KEY)


class MigrationsBusy(Exception):
    """Another deploy is applying migrations."""


def split_statements(sql: str) -> list[str]:
    """Return the statements of a file: each ends with a semicolon at the end of a line."""
    return [part.strip() for part in _END.split(_COMMENT.sub("", sql)) if part.strip()]


def apply_migrations(folder: Path = FOLDER) -> list[str]:
    """Apply the files that MySQL has not recorded yet; return their names.

    A file is recorded after its last statement. MySQL cannot roll back DDL, so a file that fails
    half way is repeated from its start: its statements must be safe to repeat (CREATE TABLE IF NOT
    EXISTS; an ALTER TABLE that adds an existing column or index, or drops a missing one, counts as
    applied).
    Raises MigrationsBusy, MysqlDown.
    """
    if mysql.fetch_all("SELECT GET_LOCK(%s, 10)", (_LOCK,)) != [(1,)]:
        raise MigrationsBusy("another deploy is applying migrations; wait until it ends")
    try:
        mysql.write(
            "CREATE TABLE IF NOT EXISTS schema_migration (name VARCHAR(100) NOT NULL PRIMARY KEY,"
            " applied_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6))"
        )
        applied_before = {name for (name,) in mysql.fetch_all("SELECT name FROM schema_migration")}
        applied = []
        for file in sorted(folder.glob("[0-9]*.sql")):
            if file.stem in applied_before:
                continue
            for statement in split_statements(file.read_text()):
                _apply(statement)
            mysql.write("INSERT INTO schema_migration (name) VALUES (%s)", (file.stem,))
            applied.append(file.stem)
        return applied
    finally:
        mysql.fetch_all("SELECT RELEASE_LOCK(%s)", (_LOCK,))


def _apply(statement: str) -> None:
    try:
        mysql.write(statement)
    except MySQLError as error:
        if error.args[0] not in _ALREADY_APPLIED:
            raise

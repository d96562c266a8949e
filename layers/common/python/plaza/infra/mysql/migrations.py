"""Migrations: applies each SQL file of plaza/schema once, in order, forward only.

The files of an area are numbered, and recorded as ``core/0001``. A migration only expands the
schema, or removes what no version in use needs (docs/operations.md,
tests/unit/policy/test_migrations.py).

A file with the line ``-- outside the deploy`` changes a table that grows in a way that takes time
for each row. It is applied while its tables are small. Later an operator runs its statements before
the deploy, and records the file.
"""

from __future__ import annotations

import re
from pathlib import Path

from pymysql.err import MySQLError

from plaza.infra.mysql import driver, mysql

FOLDER = Path(__file__).parents[2] / "schema"
_COMMENT = re.compile(r"^--.*$", re.MULTILINE)
_OUTSIDE = re.compile(r"^-- outside the deploy$", re.MULTILINE)
_CHANGED = re.compile(r"(?:ALTER TABLE|UPDATE|DELETE FROM)\s+(\w+)")
MAX_ROWS_IN_A_DEPLOY = 100_000
_END = re.compile(r";\s*$", re.MULTILINE)
_LOCK = "plaza-migrations"


class MigrationsBusy(Exception):
    """Another deploy is applying migrations."""


class DatabaseTooOld(Exception):
    """A version before 0.4.0 made the database."""


class RunsOutsideTheDeploy(Exception):
    """A migration changes a large table: an operator runs it before the deploy."""


def split_statements(sql: str) -> list[str]:
    """Return the statements of a file: each ends with a semicolon at the end of a line."""
    return [part.strip() for part in _END.split(_COMMENT.sub("", sql)) if part.strip()]


def list_files(folder: Path = FOLDER) -> dict[str, Path]:
    """Return the recorded name of each file, and its path, in the order of application."""
    files = sorted(folder.glob("*/[0-9]*.sql"))
    return {f"{file.parent.name}/{file.stem}": file for file in files}


def apply_migrations(folder: Path = FOLDER) -> list[str]:
    """Apply the files that MySQL has not recorded yet; return their names.

    A file is recorded after its last statement. MySQL cannot roll back DDL, so a file that fails
    half way is repeated from its start: its statements must be safe to repeat (CREATE TABLE IF NOT
    EXISTS; an ALTER TABLE that adds an existing column or index, or drops a missing one, counts as
    applied).
    Raises MigrationsBusy, DatabaseTooOld, RunsOutsideTheDeploy, MysqlDown.
    """
    if mysql.fetch_all("SELECT GET_LOCK(%s, 10)", (_LOCK,)) != [(1,)]:
        raise MigrationsBusy("another deploy is applying migrations; wait until it ends")
    try:
        mysql.write(
            "CREATE TABLE IF NOT EXISTS schema_migration ("
            "name VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,"
            " applied_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6))"
        )
        applied_before = {name for (name,) in mysql.fetch_all("SELECT name FROM schema_migration")}
        if any("/" not in name for name in applied_before):  # 0001_schema
            raise DatabaseTooOld(
                "this database was made by a version before 0.4.0, which cannot be upgraded:"
                " run `make fresh`, or begin with an empty database (docs/upgrading.md)"
            )
        applied = []
        for name, file in list_files(folder).items():
            if name in applied_before:
                continue
            sql = file.read_text()
            if _OUTSIDE.search(sql):
                _require_small_tables(name, sql)
            for statement in split_statements(sql):
                _apply(statement)
            mysql.write("INSERT INTO schema_migration (name) VALUES (%s)", (name,))
            applied.append(name)
        return applied
    finally:
        mysql.fetch_all("SELECT RELEASE_LOCK(%s)", (_LOCK,))


def _require_small_tables(name: str, sql: str) -> None:
    """Raise RunsOutsideTheDeploy if a file changes a table of many rows. One statement a table."""
    for table in dict.fromkeys(_CHANGED.findall(sql)):
        [(rows,)] = mysql.fetch_all(
            f"SELECT COUNT(*) FROM (SELECT 1 FROM {table} LIMIT %s) AS some",  # noqa: S608
            (MAX_ROWS_IN_A_DEPLOY + 1,),
        )
        if rows > MAX_ROWS_IN_A_DEPLOY:
            raise RunsOutsideTheDeploy(
                f"{name} changes {table}, which has more than {MAX_ROWS_IN_A_DEPLOY} rows: run it"
                " before the deploy and record it (docs/operations.md, Migrations)"
            )


def _apply(statement: str) -> None:
    try:
        mysql.write(statement)
    except MySQLError as error:
        if not driver.means(error, driver.Meaning.APPLIED):
            raise

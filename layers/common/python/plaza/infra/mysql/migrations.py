"""Migrations: applies each SQL file of plaza/migrations once, in order, forward only.

Code of the version before runs on the new schema while a deploy shifts traffic, and after a roll
back. So a migration only expands the schema, or removes what no version in use needs
(docs/operations.md, tests/unit/policy/test_migrations.py).

A file with the line ``-- outside the deploy`` changes a table that grows in a way that takes time
for each row. It is applied while its tables are small. Later an operator runs its statements before
the deploy, and records the file.
"""

from __future__ import annotations

import re
from pathlib import Path

from pymysql.err import MySQLError

from plaza.infra.mysql import driver, mysql

FOLDER = Path(__file__).parents[2] / "migrations"
_COMMENT = re.compile(r"^--.*$", re.MULTILINE)
_OUTSIDE = re.compile(r"^-- outside the deploy$", re.MULTILINE)
_CHANGED = re.compile(r"(?:ALTER TABLE|UPDATE|DELETE FROM)\s+(\w+)")
MAX_ROWS_IN_A_DEPLOY = 100_000
_END = re.compile(r";\s*$", re.MULTILINE)
_LOCK = "plaza-migrations"


class MigrationsBusy(Exception):
    """Another deploy is applying migrations."""


class RunsOutsideTheDeploy(Exception):
    """A migration changes a large table: an operator runs it before the deploy."""


def split_statements(sql: str) -> list[str]:
    """Return the statements of a file: each ends with a semicolon at the end of a line."""
    return [part.strip() for part in _END.split(_COMMENT.sub("", sql)) if part.strip()]


def apply_migrations(folder: Path = FOLDER) -> list[str]:
    """Apply the files that MySQL has not recorded yet; return their names.

    A file is recorded after its last statement. MySQL cannot roll back DDL, so a file that fails
    half way is repeated from its start: its statements must be safe to repeat (CREATE TABLE IF NOT
    EXISTS; an ALTER TABLE that adds an existing column or index, or drops a missing one, counts as
    applied).
    Raises MigrationsBusy, RunsOutsideTheDeploy, MysqlDown.
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
            sql = file.read_text()
            if _OUTSIDE.search(sql):
                _require_small_tables(file.stem, sql)
            for statement in split_statements(sql):
                _apply(statement)
            mysql.write("INSERT INTO schema_migration (name) VALUES (%s)", (file.stem,))
            applied.append(file.stem)
        return applied
    finally:
        mysql.fetch_all("SELECT RELEASE_LOCK(%s)", (_LOCK,))


def read_age_s(name: str) -> int | None:
    """Return for how many seconds a file has been recorded, None if it is not. Raises MysqlDown."""
    rows = mysql.fetch_all(
        """
        SELECT TIMESTAMPDIFF(SECOND, applied_at, CURRENT_TIMESTAMP(6))
        FROM schema_migration
        WHERE name = %s
        """,
        (name,),
    )
    return int(rows[0][0]) if rows else None


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

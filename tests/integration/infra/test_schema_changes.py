"""Code of two versions and schemas of two versions, in the order in which a deploy has them.

A deploy migrates, then shifts traffic: code of the version before runs on the expanded schema. New
code never runs on a schema that lacks an expansion; it runs on one that is not contracted yet.
tests/unit/policy/test_sql.py checks that all statements name their columns, as these do.
"""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest

from plaza.infra.mysql import mysql
from tests.support.plaza import World
from tests.support.schema_changes import BREAKING, CONTRACTING, EXPANDING, GROWING, INSTANT, TABLE

OLD_CODE = (
    "INSERT INTO example (id, name) VALUES (1, 'ada')",
    "INSERT INTO example (id, name, note) VALUES (1, 'ada', 'x')"
    " ON DUPLICATE KEY UPDATE note = VALUES(note)",
    "INSERT INTO example (id, name, note) VALUES (2, 'long name', 'x')",
    "UPDATE example SET note = NULL WHERE id = 2",
    "SELECT id, name, note FROM example WHERE note = 'x'",
    "DELETE FROM example WHERE id = 2",
)
NEW_CODE = (
    "INSERT INTO example (id, name) VALUES (3, 'eve')",
    "SELECT id, name FROM example WHERE id = 3",
    "DELETE FROM example WHERE id = 3",
)
"""Uses neither the column ``note`` nor its key, which a later migration drops."""


@pytest.fixture
def example(plaza: World) -> Iterator[None]:
    mysql.write(TABLE)
    yield
    mysql.write("DROP TABLE IF EXISTS example, example_new")


def run(*statements: str) -> None:
    for statement in statements:
        mysql.write(statement)


@pytest.mark.parametrize("migration", EXPANDING)
def test_old_code_works_with_an_expanded_schema(example: None, migration: str) -> None:
    run(OLD_CODE[0], migration, *OLD_CODE[1:])


@pytest.mark.parametrize("migration", [item for item in CONTRACTING if "ALTER" in item])
def test_new_code_works_before_and_after_the_contraction(example: None, migration: str) -> None:
    run(*NEW_CODE, migration, *NEW_CODE)


@pytest.mark.parametrize("migration", [BREAKING[0], BREAKING[2], BREAKING[3], BREAKING[5]])
def test_old_code_fails_with_what_the_policy_refuses(example: None, migration: str) -> None:
    run(migration)
    with pytest.raises(pymysql.err.MySQLError):
        run(*OLD_CODE)


@pytest.mark.parametrize("table", GROWING)
@pytest.mark.parametrize("migration", INSTANT)
def test_server_adds_a_column_at_the_end_of_a_growing_table_at_once(
    plaza: World, table: str, migration: str
) -> None:
    mysql.write(f"CREATE TABLE grown LIKE {table}")
    try:
        mysql.write(migration.format(table="grown"))
        with pytest.raises(pymysql.err.MySQLError):
            mysql.write("ALTER TABLE grown ADD KEY by_more (more), ALGORITHM=INSTANT")
    finally:
        mysql.write("DROP TABLE grown")

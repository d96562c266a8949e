"""Migrations on a real MariaDB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pymysql.err import DataError

from cli.paths import CommandError
from local.stack.baseline import require_new_redis
from local.stack.servers import connect_mysql
from plaza.infra.mysql import migrations, mysql
from plaza.infra.mysql.migrations import (
    DatabaseTooOld,
    MigrationsBusy,
    RunsOutsideTheDeploy,
    apply_migrations,
)
from plaza.infra.redis import redis
from tests.support.plaza import World
from tests.support.servers import IS_CLUSTER

TABLES = (
    "content",
    "counter",
    "reaction",
    "reaction_log",
    "schema_migration",
    "session",
    "user",
    "user_counter",
)


@pytest.fixture
def folder(plaza: World, tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "try"
    folder.mkdir()
    (folder / "9001_first.sql").write_text("CREATE TABLE IF NOT EXISTS try_a (n INT);\n")
    (folder / "9002_second.sql").write_text(
        "-- two statements;\nCREATE TABLE IF NOT EXISTS try_b (n INT);\n"
        "ALTER TABLE try_b ADD COLUMN m INT;\n"
    )
    (folder / "readme.txt").write_text("no SQL")
    yield folder
    mysql.write("DROP TABLE IF EXISTS try_a, try_b")
    mysql.write("DELETE FROM schema_migration WHERE name LIKE 'try/%%'", ())


def recorded() -> list[str]:
    return [
        name
        for (name,) in mysql.fetch_all("SELECT name FROM schema_migration ORDER BY name")
        if name.startswith("try/")
    ]


def test_a_second_deploy_applies_no_migration(plaza: World) -> None:
    assert {name for (name,) in mysql.fetch_all("SHOW TABLES")} >= set(TABLES)
    apply_migrations()
    assert apply_migrations() == []


def test_files_are_applied_once_in_order(folder: Path) -> None:
    assert apply_migrations(folder.parent) == ["try/9001_first", "try/9002_second"]
    assert recorded() == ["try/9001_first", "try/9002_second"]
    assert mysql.fetch_all("SELECT n, m FROM try_b") == []
    assert apply_migrations(folder.parent) == []


def test_a_new_file_is_applied_alone(folder: Path) -> None:
    later = (folder / "9002_second.sql").read_text()
    (folder / "9002_second.sql").unlink()
    assert apply_migrations(folder.parent) == ["try/9001_first"]
    (folder / "9002_second.sql").write_text(later)
    assert apply_migrations(folder.parent) == ["try/9002_second"]


def test_a_file_that_failed_half_way_is_repeated_from_its_start(folder: Path) -> None:
    good = (folder / "9002_second.sql").read_text()
    (folder / "9002_second.sql").write_text(good + "CREATE TABEL oops (n INT);\n")
    with pytest.raises(Exception, match="1064"):
        apply_migrations(folder.parent)
    assert recorded() == ["try/9001_first"]
    (folder / "9002_second.sql").write_text(good)
    assert apply_migrations(folder.parent) == ["try/9002_second"], "the failure released the lock"


def test_an_alter_applied_before_a_crash_is_safe_to_repeat(
    folder: Path,
) -> None:
    """Given a deploy that died after the first statements and recorded nothing."""
    (folder / "9002_second.sql").write_text(
        "CREATE TABLE IF NOT EXISTS try_b (n INT);\n"
        "ALTER TABLE try_b\n  ADD COLUMN m INT,\n  ADD KEY by_m (m);\n"
        "ALTER TABLE try_b ADD KEY by_n (n);\n"
        "ALTER TABLE try_b ADD COLUMN o INT;\n"
    )
    statements = migrations.split_statements((folder / "9002_second.sql").read_text())
    for completed in range(1, len(statements)):
        for statement in statements[:completed]:
            mysql.write(statement)
        assert apply_migrations(folder.parent)[-1] == "try/9002_second"
        columns = [name for name, *_ in mysql.fetch_all("SHOW COLUMNS FROM try_b")]
        keys = {row[2] for row in mysql.fetch_all("SHOW KEYS FROM try_b")}
        assert (columns, keys) == (["n", "m", "o"], {"by_m", "by_n"})
        mysql.write("DROP TABLE try_b")
        mysql.write("DELETE FROM schema_migration WHERE name = 'try/9002_second'")


def test_an_alter_that_fails_for_another_reason_stops_the_deploy(folder: Path) -> None:
    (folder / "9002_second.sql").write_text("ALTER TABLE try_a ADD KEY by_x (x);\n")
    with pytest.raises(Exception, match="1072"):
        apply_migrations(folder.parent)
    assert recorded() == ["try/9001_first"]


def test_a_file_outside_the_deploy_stops_a_deploy_once_its_table_is_large(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a table that a new environment has empty, and a file that takes time for each row."""
    monkeypatch.setattr(migrations, "MAX_ROWS_IN_A_DEPLOY", 2)
    apply_migrations(folder.parent)
    mysql.write("INSERT INTO try_a VALUES (1), (2)")
    marked = "-- outside the deploy\nALTER TABLE try_a ADD KEY by_{n} ({n});\n"
    (folder / "9003_third.sql").write_text(marked.format(n="n"))
    assert apply_migrations(folder.parent) == ["try/9003_third"]
    mysql.write("INSERT INTO try_a VALUES (3)")
    (folder / "9004_fourth.sql").write_text(marked.format(n="n").replace("by_n", "by_m"))
    with pytest.raises(RunsOutsideTheDeploy, match="try/9004_fourth changes try_a"):
        apply_migrations(folder.parent)
    assert {row[2] for row in mysql.fetch_all("SHOW KEYS FROM try_a")} == {"by_n"}
    mysql.write("ALTER TABLE try_a ADD KEY by_m (n)")
    mysql.write("INSERT INTO schema_migration (name) VALUES ('try/9004_fourth')")
    assert apply_migrations(folder.parent) == []


def test_every_migration_is_safe_to_repeat(plaza: World) -> None:
    """Given a deploy that died before it recorded a file."""

    def tables() -> list[tuple[str, str]]:
        return [
            mysql.fetch_all(f"SHOW CREATE TABLE {name}")[0]
            for (name,) in mysql.fetch_all("SHOW TABLES")
        ]

    before = tables()
    mysql.write("DELETE FROM schema_migration")
    assert apply_migrations() == list(migrations.list_files())
    assert tables() == before


def test_a_database_of_a_version_before_the_baseline_is_refused(folder: Path) -> None:
    mysql.write("INSERT INTO schema_migration (name) VALUES ('0001_schema')")
    try:
        with pytest.raises(DatabaseTooOld, match="run `make fresh`"):
            apply_migrations(folder.parent)
        assert recorded() == []
    finally:
        mysql.write("DELETE FROM schema_migration WHERE name = '0001_schema'")


def test_a_redis_of_a_version_before_the_baseline_is_refused(plaza: World, redis_url: str) -> None:
    require_new_redis(redis_url, cluster=IS_CLUSTER)
    redis.execute("HSET", "{0}:log_heads", "last", 1)
    with pytest.raises(CommandError, match="run `make fresh`"):
        require_new_redis(redis_url, cluster=IS_CLUSTER)


def test_concurrent_deploys_are_refused(
    folder: Path, mysql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch_all = mysql.fetch_all

    def fetch_without_wait(sql: str, args: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        return fetch_all(sql.replace("%s, 10)", "%s, 0)"), args)

    monkeypatch.setattr("plaza.infra.mysql.migrations.mysql.fetch_all", fetch_without_wait)
    with connect_mysql(mysql_url) as other, other.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK('plaza-migrations', 0)")
        with pytest.raises(MigrationsBusy):
            apply_migrations(folder.parent)
        # The end of a connection releases the lock, too, but some time later.
        cursor.execute("SELECT RELEASE_LOCK('plaza-migrations')")
    assert recorded() == []
    assert apply_migrations(folder.parent)


PAIRS = [("a", "A"), ("a", "\u00e1"), ("a", "\uff41"), ("\U0001f363", "\U0001f37a")]


def test_every_text_in_a_key_compares_byte_by_byte(plaza: World) -> None:
    """A collation that ignores case or accents would merge two targets, and MySQL and MariaDB would
    merge others. Only spaces at the end are ignored: no text that is stored in a key ends with one.
    """
    rows = mysql.fetch_all(
        "SELECT DISTINCT s.TABLE_NAME, s.COLUMN_NAME, c.COLLATION_NAME"
        " FROM information_schema.STATISTICS s JOIN information_schema.COLUMNS c"
        " USING (TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME)"
        " WHERE TABLE_SCHEMA = DATABASE() AND COLLATION_NAME IS NOT NULL"
    )
    texts = {(table, column): collation for table, column, collation in rows}
    assert texts
    for (table, column), collation in texts.items():
        assert collation in ("ascii_bin", "utf8mb4_bin"), (table, column)
        mysql.write(f"CREATE TABLE try_text AS SELECT {column} FROM {table} LIMIT 0")
        try:
            mysql.write("ALTER TABLE try_text ADD UNIQUE KEY once (" + column + ")")
            for pair in PAIRS:
                mysql.write("DELETE FROM try_text")
                for text in pair:
                    try:
                        mysql.write("INSERT INTO try_text VALUES (%s)", (text,))
                    except DataError:
                        assert collation == "ascii_bin"
                        assert not text.isascii()
                rows = mysql.fetch_all(f"SELECT {column} FROM try_text")
                expected = {t for t in pair if t.isascii() or collation == "utf8mb4_bin"}
                assert {text for (text,) in rows} == expected, (table, column)
        finally:
            mysql.write("DROP TABLE try_text")

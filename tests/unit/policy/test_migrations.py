"""A migration only expands the schema, or contracts it after a version that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plaza.infra.mysql.migrations import list_files
from tests.support.schema_changes import (
    BREAKING,
    CONTRACTING,
    EXPANDING,
    GROWING,
    INSTANT,
    NOT_INSTANT,
    find_refused,
    find_slow,
)

CONTRACT = "-- contract: after version 0.3.0\n"


@pytest.mark.parametrize("file", list_files().values(), ids=list_files())
def test_a_migration_only_expands_or_names_the_version_that_it_waits_for(file: Path) -> None:
    assert find_refused(file.read_text()) == []


@pytest.mark.parametrize("file", list_files().values(), ids=list_files())
def test_a_migration_of_a_table_that_grows_is_instant_or_outside_the_deploy(file: Path) -> None:
    assert find_slow(file.read_text()) == []


@pytest.mark.parametrize("table", GROWING)
def test_only_columns_at_the_end_are_added_to_a_table_that_grows(table: str) -> None:
    for statement in (item.format(table=table) for item in INSTANT):
        assert find_refused(f"{statement};\n") == find_slow(f"{statement};\n") == []
    others = (*NOT_INSTANT, *(item.replace("example", "{table}") for item in CONTRACTING))
    for statement in (item.format(table=table) for item in others):
        assert find_slow(f"-- why\n{statement};\n") == [statement]
        assert find_slow(f"-- outside the deploy\n{statement};\n") == []
    assert find_slow(f"ALTER TABLE {table}_totals ADD KEY by_more (version);\n") == []


@pytest.mark.parametrize("statement", EXPANDING)
def test_an_expanding_statement_is_accepted(statement: str) -> None:
    assert find_refused(f"-- why\n{statement};\n") == []


@pytest.mark.parametrize("statement", CONTRACTING)
def test_a_contracting_statement_is_accepted_after_a_version_only(statement: str) -> None:
    assert find_refused(f"{statement};\n") == [statement]
    assert find_refused(f"{statement};\n{CONTRACT}") == [statement]
    assert find_refused(f"-- contract: later\n{statement};\n") == [statement]
    assert find_refused(f"{EXPANDING[0]};\n{CONTRACT}{statement};\n") == []


@pytest.mark.parametrize("statement", BREAKING)
def test_a_breaking_statement_is_refused(statement: str) -> None:
    assert find_refused(f"{statement};\n") == [statement]
    assert find_refused(f"{CONTRACT}{statement};\n") == [statement]


@pytest.mark.parametrize("file", list_files().values(), ids=list_files())
def test_each_text_names_its_collation(file: Path) -> None:
    """Without a name it has the default of the server, which differs between MySQL and MariaDB."""
    text = re.compile(r"^.*\b(?:(?:VAR)?CHAR\(\d+\)|\w*TEXT\b)(?!.* COLLATE ).*$", re.MULTILINE)
    assert text.findall(re.sub(r"--.*", "", file.read_text())) == []

"""A migration only expands the schema, or contracts it after a version that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plaza.infra.mysql.migrations import FOLDER
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


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.sql")), ids=lambda file: file.stem)
def test_a_migration_only_expands_or_names_the_version_that_it_waits_for(file: Path) -> None:
    assert find_refused(file.read_text()) == []


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.sql")), ids=lambda file: file.stem)
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


def test_a_new_text_names_its_collation() -> None:
    """Without a name it has the default of the server, which differs between MySQL and MariaDB."""
    text = re.compile(r"^.*\b(?:(?:VAR)?CHAR\(\d+\)|\w*TEXT\b)(?!.* COLLATE ).*$", re.MULTILINE)
    for file in sorted(FOLDER.glob("*.sql")):
        if file.stem > "0023":
            assert text.findall(re.sub(r"--.*", "", file.read_text())) == [], file.stem

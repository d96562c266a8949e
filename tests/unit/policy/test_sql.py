"""A statement is one literal, in a store or in a file, so that it can be pasted into a client."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from plaza.core.counters import USER_COLUMNS, UserCounter
from plaza.core.reactions import KINDS
from plaza.core.reactions.drift import USER_TOTALS
from plaza.core.reactions.mysql_counts import select_user_counts
from plaza.core.targets.types import EXTERNAL
from plaza.infra.mysql.sql import load_sql
from tests.unit.policy.modules import PLAZA, ROOT, product_files

STATEMENT = re.compile(r"""[a-z]*['"]+\s*\(?\s*(SELECT|INSERT|UPDATE|DELETE)\b""")
PLACEHOLDER = re.compile(r"%\([a-z_]+\)s|\{[a-z_]+\}")
FILES = sorted(PLAZA.glob("*/*/sql/*.sql"))


def shown(file: Path) -> str:
    return str(file.relative_to(ROOT))


def find_pieced(source: str) -> list[int]:
    """Return the lines at which a statement of several literals begins."""
    tokens = join_formatted(tokenize.generate_tokens(io.StringIO(source).readline))
    return [
        item.start[0]
        for item, after in pairwise(tokens)
        if item.type == tokenize.STRING and STATEMENT.match(item.string)
        if after.type == tokenize.STRING or after.string == "+"
    ]


def join_formatted(tokens: Iterable[tokenize.TokenInfo]) -> Iterator[tokenize.TokenInfo]:
    """Return the tokens of code with each formatted literal as one, as before Python 3.12."""
    begin, end = (getattr(tokenize, f"FSTRING_{name}", None) for name in ("START", "END"))
    parts: list[tokenize.TokenInfo] = []
    depth = 0
    for token in tokens:
        depth += (token.type == begin) - (token.type == end)
        if depth or token.type == end:
            parts.append(token)
        elif token.type not in (tokenize.NL, tokenize.COMMENT):
            yield token
        if parts and not depth:
            text = "".join(part.string for part in parts)
            yield parts[0]._replace(type=tokenize.STRING, string=text)
            parts = []


@pytest.mark.parametrize("file", product_files(), ids=shown)
def test_a_statement_is_one_literal(file: Path) -> None:
    assert find_pieced(file.read_text()) == []


@pytest.mark.parametrize(
    "source", ['x = "SELECT 1"\n', 'x = f"""\n    DELETE FROM a\n    """\n', 'x = ("a" "b")\n']
)
def test_a_statement_of_one_literal_is_accepted(source: str) -> None:
    assert find_pieced(source) == []


@pytest.mark.parametrize(
    "source",
    [
        'x = ("SELECT 1"\n     " FROM a")\n',
        'x = f"(INSERT INTO a " + b\n',
        'x = f"DELETE {a} " f"{b}"\n',
    ],
)
def test_the_search_finds_a_statement_of_several_literals(source: str) -> None:
    assert find_pieced(source) == [1]


UNNAMED = re.compile(r"SELECT\s+(\w+\.)?\*|INSERT(\s+IGNORE)?\s+INTO\s+\w+\s+(VALUES|SELECT)\b")


@pytest.mark.parametrize("file", [*product_files(), *PLAZA.rglob("*.sql")], ids=shown)
def test_a_statement_names_its_columns(file: Path) -> None:
    """So that it works while the schema of the next version has more of them."""
    assert UNNAMED.search(file.read_text()) is None


@pytest.mark.parametrize(
    "sql", ["SELECT *", "SELECT a.* FROM a", "INSERT INTO a VALUES (1)", "INSERT INTO a\nSELECT b"]
)
def test_the_search_finds_unnamed_columns(sql: str) -> None:
    assert UNNAMED.search(sql)
    assert not UNNAMED.search("SELECT COUNT(*) FROM a; INSERT INTO a (b) SELECT c FROM a")


@pytest.mark.parametrize("file", FILES, ids=shown)
def test_a_sql_file_begins_with_a_comment_and_is_loaded_by_a_store(file: Path) -> None:
    assert re.match(r"-- [A-Z][^\n]+\n", file.read_text())
    stores = file.parent.parent.glob("mysql_*.py")
    assert any(f'"{file.name}"' in store.read_text() for store in stores)
    statement = load_sql(file)
    assert "--" not in statement
    assert not re.search("[%{}]", PLACEHOLDER.sub("", statement))


def test_the_counts_of_users_have_every_total_kind_and_type() -> None:
    assert UserCounter._fields == (*USER_COLUMNS, "version")
    statement = select_user_counts("IN (7)")
    assert f"SELECT '', user_id, {', '.join(USER_TOTALS.values())}\n" in statement
    sources = {*re.findall(r"SELECT '(\w+)'", statement), *received(statement)}
    assert sources == set(USER_TOTALS)
    targets = {target for kind in KINDS.values() for target in kind.targets} - {"user"}
    assert set(re.findall(r"c\.content_type = '(\w+)'", statement)) == targets - EXTERNAL.keys()
    assert "ON  r.target_type = t.type" in statement, "types of the app"
    assert all(arm.count(", 0") in (0, len(USER_TOTALS) - 1) for arm in statement.split("UNION"))


def received(statement: str) -> set[str]:
    """Return the totals that the arms over content count."""
    lists = re.findall(r"r\.kind IN \(([^)]*)\)", statement)
    return {f"{kind}s_received" for of_arm in lists for kind in re.findall(r"\w+", of_arm)}

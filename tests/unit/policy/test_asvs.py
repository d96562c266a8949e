"""docs/security.md: each requirement that is met names tests, and all of them exist."""

from __future__ import annotations

import ast
import json
import re
from typing import NamedTuple

import pytest

from cli.paths import CONTRACT, ROOT
from plaza.infra.http import web_client
from plaza.infra.mysql.migrations import FOLDER
from plaza.people.auth import id_tokens
from plaza.people.auth.codes import CODE_TTL_S, MAX_WRONG_TRIES
from plaza.people.auth.sessions import MAX_PASSKEY_SESSION_S, MAX_ROLE_AGE_S
from tests.unit.policy import template
from tests.unit.policy.modules import PLAZA

PAGE = (ROOT / "docs" / "security.md").read_text()
CHAPTERS = {f"V{number}" for number in range(1, 18)}
TEST = re.compile(r"`(test_\w+)`")


class Row(NamedTuple):
    """A row of a table: the cells, and the heading that it is under."""

    heading: str
    cells: tuple[str, ...]


def read_rows() -> list[Row]:
    rows = []
    for section in PAGE.split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        lines = [line for line in text.splitlines() if line.startswith("|")]
        rows += [
            Row(heading, tuple(map(str.strip, line.strip("|").split(" | ")))) for line in lines[2:]
        ]
    return rows


ROWS = read_rows()
MET = [row for row in ROWS if row.heading.startswith("V")]
GAPS = [row for row in ROWS if row.heading == "Gaps"]


def list_tests() -> set[str]:
    """Return the names of all tests of the repository."""
    return {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)\(", file.read_text(), re.MULTILINE)
    }


TESTS = list_tests()


def find_unknown(text: str) -> set[str]:
    """Return the names of tests in a text that no test has."""
    return set(TEST.findall(text)) - TESTS


def name_of(row: Row) -> str:
    return row.cells[0][:40]


def test_there_is_something_to_look_at() -> None:
    assert len(MET) > 80
    assert len(GAPS) > 10
    assert len(TESTS) > 2_000


@pytest.mark.parametrize("row", MET, ids=name_of)
def test_a_requirement_that_is_met_names_tests_that_exist(row: Row) -> None:
    _, level, where, names = row.cells
    assert set(level.split(", ")) <= {"1", "2"}
    assert where
    assert TEST.search(names)
    assert re.sub(r"`test_\w+`|, ", "", names) == "", "nothing but names of tests"
    assert find_unknown(names) == set()


def test_each_test_that_the_page_names_exists() -> None:
    """Also in the texts around the tables, and in the table of gaps."""
    assert find_unknown(PAGE) == set()


def test_a_name_of_no_test_is_found() -> None:
    known = test_a_name_of_no_test_is_found.__name__
    assert find_unknown(f"`{known}`, `{known}_at_all`") == {f"{known}_at_all"}


@pytest.mark.parametrize("row", GAPS, ids=name_of)
def test_a_gap_has_its_reason(row: Row) -> None:
    requirement, level, missing, reason = row.cells
    assert re.match(r"V\d", requirement)
    assert set(level.split(", ")) <= {"1", "2"}
    assert missing
    assert reason


def test_each_chapter_is_in_a_table() -> None:
    first = [row.cells[0] for row in ROWS]
    named = {chapter for cell in first for chapter in re.findall(r"\bV\d+", cell)}
    assert named == CHAPTERS


def test_no_requirement_is_met_twice() -> None:
    numbers = [re.findall(r"^V\d+\.\d+\.\d+", row.cells[0]) for row in MET]
    flat = [number for each in numbers for number in each]
    assert len(flat) == len(set(flat))


# ---------------------------------------------------------------- receipts that no other test gives


def read_default(name: str) -> object:
    """Return the default of a parameter of template.yaml."""
    return template.TEMPLATE["Parameters"][name]["Default"]


@pytest.mark.parametrize(
    ("text", "value", "of_code"),
    [
        ("ten seconds in all", 10, web_client.MAX_REQUEST_S),
        ("five tries of a challenge", 5, MAX_WRONG_TRIES),
        ("after five minutes", 300, CODE_TTL_S),
        ("`SessionTtl`, 30 days", 30 * 86_400, read_default("SessionTtl")),
        ("`SessionMaxAge`, 180 days", 180 * 86_400, read_default("SessionMaxAge")),
        ("a role of operators 12 hours", 12 * 3_600, MAX_PASSKEY_SESSION_S),
        ("MySQL each minute", 60, MAX_ROLE_AGE_S),
        ("a minute of difference at most", 60, id_tokens.MAX_SKEW_S),
        ("`LogDays`, 30 days", 30, read_default("LogDays")),
    ],
)
def test_a_number_of_the_page_is_that_of_code_or_template(
    text: str, value: float, of_code: object
) -> None:
    assert text in PAGE
    assert value == of_code


RUNNING = {"subprocess", "pickle", "marshal", "shelve", "code", "codeop", "pty"}
CALLED = {"eval", "exec", "compile", "__import__", "system", "popen"}
CODE = sorted([*(ROOT / "functions").rglob("*.py"), *PLAZA.rglob("*.py")])


def find_dangers(source: str) -> set[str]:
    """Return the modules and calls of a source that start a process or run what they are given."""
    dangers = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                dangers |= {alias.name.partition(".")[0] for alias in names} & RUNNING
            case ast.ImportFrom(module=str(module)):
                dangers |= {module.partition(".")[0]} & RUNNING
            case ast.Call(func=ast.Name(id=name)):
                dangers |= {name} & CALLED
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr=name)):
                dangers |= {name} & CALLED
    return dangers


def test_no_function_starts_a_process_or_runs_a_text() -> None:
    assert {
        file.name: dangers for file in CODE if (dangers := find_dangers(file.read_text()))
    } == {}


@pytest.mark.parametrize(
    "source",
    ["import subprocess", "from pickle import loads", "eval(text)", "import os\nos.system(text)"],
)
def test_the_search_finds_what_runs_a_text(source: str) -> None:
    assert find_dangers(source)


def test_one_module_sends_requests_to_servers_that_users_and_operators_name() -> None:
    """Of the three that open connections, two send to AWS."""
    opens = re.compile(r"create_connection|http\.client |urlopen|urllib3|import (requests|httpx)")
    opening = {file.name for file in CODE if opens.search(file.read_text())}
    assert opening == {"aws_json.py", "custom_resource.py", "web_client.py"}


def test_no_function_reads_or_sets_a_cookie() -> None:
    names = re.compile(r"set-cookie|[\"']cookies?[\"']", re.IGNORECASE)
    assert [file.name for file in CODE if names.search(file.read_text())] == []
    assert names.search('event["cookies"]')


def test_no_migration_creates_a_user() -> None:
    creates = re.compile(r"\bINTO\s+user\b", re.IGNORECASE)
    migrations = [file.read_text() for file in FOLDER.rglob("*.sql")]
    assert len(migrations) >= 5
    assert not any(map(creates.search, migrations))
    assert creates.search("INSERT IGNORE INTO user (id)")


def test_no_page_sets_html() -> None:
    sources = [
        file
        for file in (ROOT / "web").rglob("*.ts*")
        if not {"node_modules", "dist"} & set(file.parts)
    ]
    assert len(sources) > 20
    unsafe = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySet")
    assert [str(file) for file in sources if unsafe.search(file.read_text())] == []


def test_no_part_of_a_url_is_a_secret() -> None:
    contract = json.loads(CONTRACT.read_text())
    names = {
        parameter["name"]
        for operations in contract["paths"].values()
        for operation in operations.values()
        for parameter in operation.get("parameters", [])
        if parameter["in"] in ("path", "query")
    }
    assert len(names) > 15
    names -= {"passkey_id", "key_id"}  # which name a passkey and a server's key, and open nothing
    assert [n for n in names if re.search("token|code|phone|secret|key|challenge", n)] == []

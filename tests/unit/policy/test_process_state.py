"""The state of a process can be reset as a whole, and it has one clock that tests replace."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.unit.policy.modules import PLAZA, ROOT, imports_of, product_files, tree_of

CLOCK = PLAZA / "infra" / "runtime" / "clock.py"
# A token bucket takes its clock as an argument; this is the default.
BY_NAME = {PLAZA / "infra" / "redis" / "token_bucket.py": {"monotonic_s"}}
READS_THE_TIME = {"now", "utcnow", "today"}


def shown(file: Path) -> str:
    return str(file.relative_to(ROOT))


def find_globals(tree: ast.AST) -> list[int]:
    return [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Global)]


def find_readings_of_the_time(tree: ast.AST) -> list[int]:
    """Return the lines that read the time from ``datetime`` or ``date``."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in READS_THE_TIME
        and ast.unparse(node.func.value).rpartition(".")[2] in {"datetime", "date"}
    ]


@pytest.mark.parametrize("file", product_files(), ids=shown)
def test_no_function_assigns_a_global(file: Path) -> None:
    """``reset_process`` would not reset it: use ``Lazy`` or ``LocalCache``."""
    assert find_globals(tree_of(file)) == []


@pytest.mark.parametrize("file", [f for f in product_files() if f != CLOCK], ids=shown)
def test_the_time_comes_from_one_clock(file: Path) -> None:
    assert "time" not in {imported.module for imported in imports_of(file)}
    assert find_readings_of_the_time(tree_of(file)) == []
    names = {
        imported.name
        for imported in imports_of(file)
        if imported.module == "plaza.infra.runtime.clock"
    }
    assert names <= {"Deadline"} | BY_NAME.get(file, set()), "tests can't replace imported names"


@pytest.mark.parametrize(
    "code", ["datetime.now(UTC)", "datetime.datetime.utcnow()", "date.today()", "datetime.today()"]
)
def test_the_search_finds_readings_of_the_time(code: str) -> None:
    assert find_readings_of_the_time(ast.parse(code))


def test_the_search_finds_globals() -> None:
    assert find_globals(ast.parse("def f():\n    global x\n    x = 1"))

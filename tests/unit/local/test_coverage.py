"""The printed coverage counts all modules that ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.coverage import MIN_BODY_LINES, find_unmeasured


@pytest.fixture
def module(tmp_path: Path) -> str:
    lines = ["LIMIT = 3", "", "", "def gate():", *(f"    x = {n}" for n in range(MIN_BODY_LINES))]
    (tmp_path / "gate.py").write_text("\n".join(lines))
    return str(tmp_path / "gate.py")


BODY = list(range(5, 5 + MIN_BODY_LINES))


def test_a_module_whose_functions_never_ran_was_not_measured(module: str) -> None:
    files = {module: {"executed_lines": [1, 4], "missing_lines": BODY}}
    assert list(find_unmeasured(files)) == [Path(module)]


def test_a_module_with_a_line_of_a_function_that_ran_was_measured(module: str) -> None:
    files = {module: {"executed_lines": [1, 4, BODY[0]], "missing_lines": BODY[1:]}}
    assert list(find_unmeasured(files)) == []


def test_a_module_with_few_lines_in_functions_may_have_no_test(module: str) -> None:
    files = {module: {"executed_lines": [1, 4], "missing_lines": BODY[1:]}}
    assert list(find_unmeasured(files)) == []

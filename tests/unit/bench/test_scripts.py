"""Every script is measured at its limits, or is known not to be yet."""

from __future__ import annotations

import pytest

from bench.scripts import CASES, find_unmeasured, scripts


def test_every_script_has_a_case() -> None:
    assert find_unmeasured() == []


def test_a_case_is_of_a_script_that_there_is() -> None:
    assert {case.script.sha for case in CASES} <= set(scripts().values())


def test_a_script_without_a_case_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.scripts.CASES", CASES[1:])
    assert len(find_unmeasured()) == 1

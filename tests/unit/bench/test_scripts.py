"""Coverage of scripts by cases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench import scripts
from bench.scripts import CASES, find_unmeasured
from plaza.infra.redis.scripts import Script


def test_every_script_has_a_case() -> None:
    assert find_unmeasured() == []


def test_every_case_has_an_existing_script() -> None:
    assert {case.script.sha for case in CASES} <= set(scripts.scripts().values())


def test_script_without_a_case_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [case for case in CASES if case.script.name != "push"]
    monkeypatch.setattr(scripts, "CASES", others)
    assert find_unmeasured() == ["feed/push"]


def test_changed_script_is_not_measured_by_its_old_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    former = [
        replace(case, script=Script(case.script.name, lambda: "return 0"))
        if case.script.name == "push"
        else case
        for case in CASES
    ]
    monkeypatch.setattr(scripts, "CASES", former)
    assert find_unmeasured() == ["feed/push"]

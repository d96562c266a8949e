"""Two faults at the same time."""

from __future__ import annotations

import pytest

from tests.chaos.faults import Fault, Step, inject_both
from tests.support.failures import failing

FOR_S = 0.04


def fault(name: str, completed: list[str], steps: int = 1) -> Fault:
    def note(what: str) -> Step:
        return Step(lambda: completed.append(f"{name} {what}"), 4)

    return Fault(
        name, [note(str(n)) for n in range(steps)], lambda: completed.append(f"{name} undone")
    )


def test_second_fault_starts_and_ends_a_quarter_later() -> None:
    completed: list[str] = []
    began_s, ended_s = inject_both(fault("a", completed, 2), fault("b", completed), FOR_S)
    assert completed == ["a 0", "b 0", "a 1", "a undone", "b undone"]
    assert ended_s - began_s >= FOR_S * 5 / 4


def test_both_faults_are_undone_once_when_one_fails() -> None:
    completed: list[str] = []

    with pytest.raises(OSError, match="can't be done"):
        inject_both(
            fault("a", completed),
            fault("b", completed)._replace(steps=[Step(failing(OSError("it can't be done")))]),
            FOR_S,
        )
    assert completed == ["a 0", "a undone", "b undone"]

"""The audit that waits: it reports on a stack in which nothing is in transit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import cast

import pytest

from local.audit import audit
from local.audit.compare import AuditReport, compare
from local.audit.stores import MysqlState, RedisState
from local.stack.stack import Stack

STACK = cast(Stack, None)


def report_of(waiting: int) -> AuditReport:
    return compare(MysqlState(), RedisState(), {"acknowledgements": (waiting, 0)})


@pytest.fixture
def audits(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that sets the reports of the next audits; a wait that does not become quiet
    takes all its time."""
    now_s = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])

    def let(*reports: AuditReport, became_quiet: bool = True) -> None:
        results = iter(reports)

        def wait(stack: Stack, timeout_s: float) -> bool:
            now_s[0] += 0.01 if became_quiet else timeout_s + 0.01
            return became_quiet

        monkeypatch.setattr(audit, "wait_until_quiet", wait)
        monkeypatch.setattr(audit, "run_audit", lambda stack: next(results))

    return let


def test_an_audit_during_which_a_schedule_began_is_repeated(audits: Callable[..., None]) -> None:
    last = report_of(0)
    audits(report_of(1), report_of(2), last)
    assert audit.audit_when_quiet(STACK) is last


def test_a_stack_that_does_not_become_quiet_is_audited_once(audits: Callable[..., None]) -> None:
    busy = report_of(1)
    audits(busy, became_quiet=False)
    assert audit.audit_when_quiet(STACK) is busy


def test_the_last_report_is_returned_after_the_timeout(audits: Callable[..., None]) -> None:
    busy = report_of(1)
    audits(busy, report_of(0))
    assert audit.audit_when_quiet(STACK, timeout_s=0) is busy

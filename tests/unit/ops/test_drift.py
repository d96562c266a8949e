"""The report of ``ops drift``: texts and exit status."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from rich.console import Console

from ops import drift
from plaza.infra.derived.comparisons import Finding, Subject, Tally
from plaza.operate.reconciliation import RunReport, orchestrator
from plaza.operate.reconciliation.model import Example

AT = datetime(2026, 11, 21, 3, 30, tzinfo=UTC)
CLEAN = RunReport(3, AT, AT.replace(second=7), Tally(targets=4, relations=12_345), 0, 0, {}, [])
FOUND = Example(Finding("counter", Subject("like", "post", 7), "counter 5, rows 4"), AT, None)
WRONG = replace(
    CLEAN, differing=2, repaired=1, reason_counts={"counter": 1, "total": 1}, examples=[FOUND]
)


def shown(report: RunReport) -> str:
    console = Console(width=120, highlight=False)
    with console.capture() as capture:
        console.print(drift.render(report))
    return capture.get()


def test_agreement_is_reported() -> None:
    text = shown(CLEAN)
    assert "12,345" in text
    assert "3, 7.0 s" in text
    assert "all agree" in text
    assert "✗" not in text


def test_difference_is_reported_with_its_reason() -> None:
    text = shown(WRONG)
    assert "2: counter 1, total 1" in text
    assert "counter: like post:7: counter 5, rows 4 (not repaired)" in text
    assert "and 1 more" in text
    assert "differences remain" in text


def test_repaired_difference_is_reported() -> None:
    text = shown(replace(WRONG, repaired=2, examples=[FOUND._replace(repaired_at=AT)]))
    assert "(repaired)" in text
    assert "differences were repaired" in text


@pytest.mark.parametrize(("report", "status"), [(CLEAN, 0), (WRONG, 1)])
def test_exit_status_is_0_when_all_stores_agree(
    report: RunReport,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(drift, "wait_for_run", lambda run_id: report)
    monkeypatch.setattr(orchestrator, "start", lambda: 3)
    assert drift.main(Namespace(environment=True, json=True)) == status
    assert f'"settled": {"true" if status == 0 else "false"}' in capsys.readouterr().out

"""The report of a replay, as text and as JSON."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from local.audit.compare import compare
from local.audit.stores import MysqlState, RedisState
from local.load.crowd import Tally
from local.load.follows import Follow, plan
from local.load.replay import Report, show
from local.load.scenario import Comparison

COMPARED = Comparison("of its users", {"followers": (2, 2, 2)}, [], ["profiles of 3 users"])


@pytest.fixture
def report() -> Report:
    return Report(
        name="follows.csv",
        requests=plan([Follow(1, 2), Follow(3, 2)]),
        tally=Tally(sent=3, ended=2, accepted=3, changed=2, duplicates=1, latencies_s=[0.01] * 3),
        expected=2,
        persisted=2,
        killed=1,
        compared=COMPARED,
        audit_report=compare(MysqlState(), RedisState(), {}),
    )


def shown(report: Report) -> str:
    out = io.StringIO()
    show(report, Console(file=out, width=120))
    return out.getvalue()


def test_clean_replay_is_reported(report: Report) -> None:
    assert report.clean
    text = shown(report)
    for part in ("2: 2 follows", "of its users", "compared: profiles of 3 users", "clean"):
        assert part in text
    assert "✗" not in text


def test_difference_from_the_file_is_not_clean(report: Report) -> None:
    values = "user 2 has 3 followers by the API, 2 by the file"
    report = replace(
        report, compared=Comparison("of its users", {"followers": (2, 2, 3)}, [values])
    )
    assert not report.clean
    assert values in shown(report)
    assert "✗" in shown(report)
    assert report.to_json()["differences"] == [values]


@pytest.mark.parametrize("tally", [Tally(failures=["503"]), Tally(wrong=["changed 2 times"])])
def test_failure_or_impossible_answer_is_not_clean(report: Report, tally: Tally) -> None:
    assert not replace(report, tally=tally).clean


def test_report_is_available_as_json(report: Report) -> None:
    values = report.to_json()
    assert values["totals"] == {"followers": {"file": 2, "rows": 2, "api": 2}}
    assert (values["clean"], values["requests"], values["sent"], values["killed"]) == (
        True,
        2,
        3,
        1,
    )
    assert values["compared"] == ["profiles of 3 users"]
    assert values["audit"]["clean"] is True

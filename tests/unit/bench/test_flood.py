"""The simulation of a flood, and its figures in docs/scaling.md."""

from __future__ import annotations

import re

import pytest

from bench.flood import (
    HEADINGS,
    SCENARIOS,
    Outcome,
    Scenario,
    format_row,
    list_rows,
    play,
    read_functions,
)
from cli.paths import ROOT
from deploy.preflight import UNRESERVED, count_reserved

FUNCTIONS = read_functions()
GUARDED = [scenario for scenario in SCENARIOS if scenario.reserves]
Rows = dict[Scenario, Outcome]


@pytest.fixture(scope="module")
def rows() -> Rows:
    """The outcome of each scenario. It takes seconds, so not when tests are collected."""
    return dict(list_rows(FUNCTIONS))


def test_the_simulation_has_the_functions_of_the_template() -> None:
    assert FUNCTIONS.reserved == count_reserved()
    assert FUNCTIONS.minutely >= 8


def test_the_page_has_the_figures_of_the_command(rows: Rows) -> None:
    page = (ROOT / "docs" / "scaling.md").read_text()
    head = "| " + " | ".join(HEADINGS) + " |\n"
    assert page.count(head) == 1
    table = page.split(head)[1].split("\n\n")[0].splitlines()[1:]
    cells = [[cell.strip() for cell in re.findall(r"[^|]+", line)] for line in table]
    assert cells == [format_row(scenario, outcome) for scenario, outcome in rows.items()]
    text = " ".join(page.split())
    assert f"reserves {FUNCTIONS.reserved} executions" in text
    assert f"a quota of {FUNCTIONS.reserved + UNRESERVED}" in text


@pytest.mark.parametrize("scenario", GUARDED, ids=str)
def test_with_reserved_executions_consumers_keep_up_and_all_schedules_run(
    scenario: Scenario, rows: Rows
) -> None:
    """And without them they do not, unless requests are short."""
    outcome, without = rows[scenario], rows[scenario._replace(reserves=False)]
    assert outcome.behind_s <= 1
    assert outcome.runs == outcome.runs_due
    assert outcome.answered_per_s >= 0.85 * without.answered_per_s, "what requests pay"
    if scenario.request_ms >= 500:
        assert without.runs < without.runs_due


@pytest.mark.parametrize("quota", [10, 50])
def test_a_small_account_is_guarded_by_a_rate_of_requests_only(quota: int, rows: Rows) -> None:
    outcomes = {s.rate_limit: outcome for s, outcome in rows.items() if s.quota == quota}
    assert outcomes[quota].runs == outcomes[quota].runs_due
    assert outcomes[quota].behind_s <= 1
    assert outcomes[None].runs < outcomes[None].runs_due


def test_an_account_without_room_cannot_reserve() -> None:
    scenario = Scenario(FUNCTIONS.reserved + UNRESERVED - 1, 100, 100, reserves=True)
    with pytest.raises(ValueError, match="too few"):
        play(scenario, FUNCTIONS)


def test_a_flood_is_played_alike_each_time(rows: Rows) -> None:
    assert play(SCENARIOS[-1], FUNCTIONS) == rows[SCENARIOS[-1]]

"""Every script is measured at its limits, or is known not to be yet."""

from __future__ import annotations

from bench.scripts import CASES, find_unmeasured, scripts

# A new script gets a case in bench/scripts. A context with all its cases there leaves this list.
UNMEASURED_CONTEXTS = {"auth", "checkins", "counters", "feed", "flash_sales", "reactions"}
MEASURED_OF_REACTIONS = {"project_ranking", "page_ranking", "swap_ranking"}


def test_every_script_has_a_case() -> None:
    unmeasured = [name.split("/") for name in find_unmeasured()]
    assert {context for context, _ in unmeasured} <= UNMEASURED_CONTEXTS
    of_reactions = {name for context, name in unmeasured if context == "reactions"}
    assert not of_reactions & MEASURED_OF_REACTIONS


def test_a_case_is_of_a_script_that_there_is() -> None:
    assert {case.script.sha for case in CASES} <= set(scripts().values())


def test_a_script_without_a_case_is_found() -> None:
    assert "feed/push" in find_unmeasured() or "feed" not in UNMEASURED_CONTEXTS

"""The model of the unread counter: random schedules break no invariant, and each rule is needed.

A run is one seed, as in test_reactions_model.py: PLAZA_MODEL_RUNS and
PLAZA_MODEL_SEED. A failure shows its seed.
"""

from __future__ import annotations

import os

import pytest

from tests.model.unread_model import RULES, find
from tests.support.depth import read_count

RUNS = read_count("PLAZA_MODEL_RUNS", 100, 900)
FIRST = int(os.environ.get("PLAZA_MODEL_SEED", "0"))
MAX_RUNS = 60  # that find a missing rule
# The first seed that finds a rule which few schedules need. test_unread_races.py has directed tests
# for it and for "announce".
RARE = {"deleted_under_lock": 1127}


@pytest.mark.sampled
def test_no_schedule_breaks_an_invariant() -> None:
    assert find(RULES, range(FIRST, FIRST + RUNS)) is None


@pytest.mark.parametrize("rule", RULES)
def test_without_a_rule_a_schedule_breaks_an_invariant(rule: str) -> None:
    first = RARE.get(rule, 0)
    rules = [other for other in RULES if other != rule]
    assert find(rules, range(first, first + MAX_RUNS)), f"no schedule needs {rule}"

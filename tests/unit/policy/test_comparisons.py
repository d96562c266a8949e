"""What contexts declare for the reconciliation: names that are stored are unique, and stay.

The names of parts, checks, subjects and reasons are in tables and messages.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter

import pytest

from plaza.core.reactions import KINDS
from plaza.infra.derived.comparisons import LIST, DerivedList
from plaza.operate.reconciliation import declared, run_steps
from tests.unit.policy.modules import LAYER, PLAZA

TYPES = {target_type for kind in KINDS.values() for target_type in kind.targets}
PARTS = {
    *(f"targets:{target_type}" for target_type in TYPES),
    *("targets:shop", "users", "review_likes", "shops", "vouchers", "unread", "groups"),
    *("hours", "filter"),
}
REASONS = {
    *("counter", "total", "members", "filter", "projection", "ahead", "unknown", "unreadable"),
    *("sorted", "stuck", "list", "hours", "review_likes", "slot"),
    *("unread-total", "unread-blocks", "unread-sequence", "unread-fresh"),
}
LISTS = {
    *(f"list-{kind}" for kind in KINDS),
    *(f"earliest-{kind.name}-{of}" for kind in KINDS.values() for of in kind.targets),
    *("unread-cache", "inbox", "celebrity-posts", "check-ins", "shop", "voucher", "sale"),
}
SUBJECTS = {
    *LISTS,
    *KINDS,
    *("comment", "user", "posts", "followers", "following", "likes_received", "collects_received"),
    *("reviews", "scores", "hours", "review_likes", "slot"),
    *("unread", "unread-comment", "unread-follow", "unread-like"),
}
MAX_MODULES = 162  # that a process loads with its first comparison: most contexts' stores
ENGINE = ("cycles", "declared", "orchestrator", "repair", "run_steps")


def test_parts_have_the_names_that_are_stored() -> None:
    names = [*declared.rolling(), *declared.parts()]
    assert len(names) == len({*names})
    assert {*names} == PARTS
    assert not {*names} & {"log", "redis", run_steps.RECHECK, run_steps.SEND_REPAIRS}


def test_reasons_have_the_names_that_are_stored() -> None:
    of_lists = {LIST} if declared.lists() else set()
    others = (c for c in declared.list_comparisons() if not isinstance(c, DerivedList))
    assert of_lists | {reason for each in others for reason in each.reasons} == REASONS


def test_lists_have_the_names_that_are_stored() -> None:
    assert {*declared.lists()} == LISTS


def test_checks_have_names_of_their_own() -> None:
    assert {*run_steps.CHECKS} == {"state", LIST}
    assert not {*run_steps.CHECKS} & {*declared.parts()}


def test_each_subject_is_repaired_by_one_comparison() -> None:
    repaired = Counter(what for of in declared.list_repairs() for what in of.subjects)
    assert {*repaired} == SUBJECTS
    assert {*repaired.values()} == {1}


def test_what_is_copied_from_counters_is_repaired_after_them() -> None:
    before: set[str] = set()
    for of in declared.list_repairs():
        assert of.copied_from is None or of.copied_from[0] in before
        before |= {*of.subjects}


@pytest.mark.parametrize("module", ENGINE)
def test_the_engine_names_no_comparison(module: str) -> None:
    code = (PLAZA / "operate" / "reconciliation" / f"{module}.py").read_text()
    literals = {*re.findall(r'"([a-z_-]+):?"', code)}
    names = {each.partition(":")[0] for each in PARTS} | SUBJECTS | (REASONS - {LIST})
    assert literals & names == set()


def test_all_comparisons_load_a_bounded_number_of_modules() -> None:
    code = (
        "import sys; from plaza.operate.reconciliation import declared, repair, orchestrator;"
        "declared.list_repairs(); print(sum(name.startswith('plaza.') for name in sys.modules))"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(LAYER)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(completed.stdout) <= MAX_MODULES

"""Wings: which others each may know, and manifests that name only what exists.

An arrow is an import, or a table that a statement names. No context is named here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from plaza.infra.contexts import (
    OPTIONAL,
    WINGS,
    Context,
    list_contexts,
    list_offers,
    list_wings,
    load,
    offers,
)
from tests.support.tables import TABLES
from tests.support.wings import without
from tests.unit.policy.modules import CONTEXTS, FUNCTIONS, LAYER, PLAZA
from tests.unit.policy.test_owned_data import texts_of, words_after
from tests.unit.policy.test_rooms import MODULES, imported_by

MAY_KNOW = {
    "core": set[str](),
    "people": {"core"},
    "operate": {"core", "people"},
    "notifications": {"core", "people"},
    "social": {"core", "people"},
    "commerce": {"core", "people"},
    "integrations": {"core"},
}
MAX_MODULES = 10  # that reading all manifests loads
MAX_SWEEP_NOW_S = 6  # the API answers within 10 s
SHARED = [app for app in sorted(FUNCTIONS.glob("*/*/app.py")) if "offers(" in app.read_text()]
"""Functions that iterate over what contexts offer."""
RELATIONS = Context._fields[1:]


@cache
def arrows() -> set[tuple[str, str]]:
    """Return (file, wing that it knows besides its own)."""
    wing_of = {name: wing for wing, _, name in (context.partition("/") for context in CONTEXTS)}
    results = set()
    for file in sorted(PLAZA.rglob("*.*")):
        own = file.relative_to(PLAZA).parts[0]
        if own not in WINGS:
            continue
        known = set()
        if file.suffix == ".py":
            known = {MODULES[name].relative_to(PLAZA).parts[0] for name in imported_by(file)}
        for text in texts_of(file):
            owners = {TABLES[name].owner for name in words_after(text) if name in TABLES}
            known |= {wing_of.get(owner, own) for owner in owners}
        results |= {(str(file.relative_to(PLAZA)), wing) for wing in known & {*WINGS} - {own}}
    return results


def test_a_wing_knows_the_wings_below_it() -> None:
    above = {(file, wing) for file, wing in arrows() if wing not in MAY_KNOW[file.split("/")[0]]}
    assert above == set()


def test_the_wings_have_no_circle() -> None:
    order = list(MAY_KNOW)
    assert set(order) == set(WINGS)
    for wing, known in MAY_KNOW.items():
        assert known <= set(order[: order.index(wing)])


def test_every_context_is_in_the_manifest_of_its_wing() -> None:
    declared = [f"{wing}/{context.name}" for wing, context in list_contexts()]
    assert sorted(declared) == CONTEXTS


@pytest.mark.parametrize("wing", WINGS)
def test_the_package_of_a_wing_is_empty(wing: str) -> None:
    """So that a function loads no more of it than it uses."""
    assert (PLAZA / wing / "__init__.py").read_text() == ""


@pytest.mark.parametrize("relation", RELATIONS)
def test_what_a_manifest_names_exists(relation: str) -> None:
    for wing, context, name in list_offers(relation):
        assert name.partition(":")[0].partition(".")[0] == context, f"{name} is of another context"
        assert load(wing, name) is not None


def test_the_wings_that_are_off_are_known() -> None:
    with without(" social", "commerce "):
        assert list_wings() == tuple(w for w in WINGS if w not in ("social", "commerce"))
    with without("sociable"), pytest.raises(ValueError, match="sociable"):
        list_wings()


def test_one_context_participates() -> None:
    """Rows of reactions and comments have one column for what a participant returns."""
    assert len(list(offers("participates"))) == 1


def test_reading_all_manifests_loads_few_modules() -> None:
    code = (
        "import sys, json; before = set(sys.modules);"
        "from plaza.infra.contexts import list_contexts; list_contexts();"
        "print(json.dumps([m for m in set(sys.modules) - before if m.startswith('plaza.')"
        " and m.count('.') > 1]))"
    )
    env = os.environ | {"PYTHONPATH": str(LAYER)}
    completed = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert len(json.loads(completed.stdout)) <= MAX_MODULES


@pytest.mark.parametrize("app", SHARED, ids=lambda app: app.parent.name)
def test_a_function_of_several_contexts_knows_no_optional_wing(app: Path) -> None:
    known = {MODULES[name].relative_to(PLAZA).parts[0] for name in imported_by(app)}
    assert known.isdisjoint(OPTIONAL)


def test_functions_of_several_contexts_are_found() -> None:
    assert {"sample_gauges", "sweep_outbox", "delete_expired", "maintain_log"} <= {
        app.parent.name for app in SHARED
    }


def test_an_operator_sweeps_the_outboxes_of_all_contexts_within_a_request() -> None:
    assert sum(sweep.max_now_s for _, sweep in offers("sweeps")) <= MAX_SWEEP_NOW_S

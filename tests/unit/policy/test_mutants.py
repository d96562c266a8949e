"""Mutants fit the code that they mutate, and docs/mutants.md has all."""

from __future__ import annotations

import ast
from collections import Counter
from itertools import chain

import pytest

from cli.paths import LAYER, ROOT
from tests.mutants import report
from tests.mutants.catalog import load_mutants
from tests.mutants.mutant import Mutant
from tests.mutants.nearest import OF_FILES, OF_MUTANTS

PLAZA = LAYER / "plaza"
MODULES = (
    "core/reactions/acknowledgement.py", "core/reactions/persist.py",
    "core/reactions/mysql_log.py", "core/reactions/mysql_rows.py",
    "core/reactions/mysql_snapshots.py", "core/reactions/model.py", "core/reactions/hydration.py",
    "core/reactions/react.py", "core/reactions/queries.py", "core/reactions/redis_commits.py",
    "core/reactions/redis_hydration.py", "core/reactions/sweep.py", "core/reactions/queues.py",
    "core/reactions/failover_recovery.py", "core/reactions/mysql_failover_progress.py",
    "core/counters/mysql_store.py", "core/counters/redis_store.py",
    "commerce/flash_sales/persist.py", "commerce/flash_sales/model.py",
    "commerce/flash_sales/mysql_orders.py", "commerce/flash_sales/recover_orders.py",
    "infra/queues/processor.py", "infra/queues/retries.py", "infra/derived/outbox.py",
    "infra/derived/projections.py",
)  # fmt: skip
CONTEXTS_WITH_SCRIPTS = ("core/reactions", "core/counters", "commerce/flash_sales")
# Pure arithmetic of the counts field, which each mutant of its callers changes, too.
WITHOUT_RULES = {"commerce/flash_sales/lua/counts.inc.lua"}


@pytest.mark.parametrize("mutant", load_mutants(), ids=lambda mutant: mutant.name)
def test_a_mutant_changes_one_place_of_its_file(mutant: Mutant) -> None:
    text = mutant.path().read_text()
    mutated = mutant.apply(text)
    assert mutated != text
    if mutant.file.endswith(".py"):
        assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(text))


def test_each_mutant_has_a_name_and_a_change_of_its_own() -> None:
    names = Counter(mutant.name for mutant in load_mutants())
    changes = Counter((mutant.file, mutant.old, mutant.new) for mutant in load_mutants())
    assert max(names.values()) == max(changes.values()) == 1


def test_the_nearest_tests_exist() -> None:
    mutants = load_mutants()
    assert {mutant.file for mutant in mutants} == OF_FILES.keys()
    assert {mutant.name for mutant in mutants} >= OF_MUTANTS.keys()
    for path in set(chain.from_iterable(mutant.tests for mutant in mutants)):
        file, _, name = path.partition("::")
        assert (ROOT / file).is_file(), path
        assert f"def {name}(" in (ROOT / file).read_text() if name else True, path


def test_all_scripts_and_the_modules_of_consumers_have_mutants() -> None:
    scripts = {
        str(path.relative_to(PLAZA))
        for context in CONTEXTS_WITH_SCRIPTS
        for path in (PLAZA / context / "lua").glob("*.lua")
    }
    files = {mutant.file for mutant in load_mutants()}
    assert scripts - WITHOUT_RULES | set(MODULES) <= files


def test_the_page_has_all_mutants() -> None:
    assert report.read() == report.render(load_mutants()), "run `make mutants`"

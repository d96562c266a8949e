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
    "reactions/acknowledgement.py",
    "reactions/persist.py", "reactions/mysql_log.py", "reactions/mysql_rows.py",
    "reactions/mysql_snapshots.py", "reactions/model.py", "reactions/hydration.py",
    "reactions/react.py", "reactions/queries.py", "reactions/redis_commits.py",
    "reactions/redis_hydration.py", "reactions/sweep.py", "reactions/queues.py",
    "reactions/failover_recovery.py", "reactions/mysql_failover_progress.py",
    "counters/mysql_store.py", "counters/redis_store.py", "flash_sales/persist.py",
    "flash_sales/model.py", "flash_sales/mysql_orders.py", "flash_sales/recover_orders.py",
    "infra/queues/processor.py", "infra/queues/retries.py", "infra/derived/outbox.py",
    "infra/derived/projections.py",
)  # fmt: skip
CONTEXTS_WITH_SCRIPTS = ("reactions", "counters", "flash_sales")
# Pure arithmetic of the counts field, which each mutant of its callers changes, too.
WITHOUT_RULES = {"flash_sales/lua/counts.inc.lua"}


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

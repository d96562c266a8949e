"""Reactions under every kind of trouble at once, on the product's own Lua and SQL.

Always: the total in Redis is the number of actors whose newest decision is on, an answer about
membership agrees with it, and each answer of the gate says truly whether it changed something.
When it is quiet: Redis = counter = rows = log, no answer about membership contradicts a row, lists
have no hole, each actor's last answered request stands, and so do the totals of users.

A run is one seed. ``python -m tests.model`` runs thousands of them, and the mutations of the
protocol; here PLAZA_MODEL_RUNS (150) are run, beginning with PLAZA_MODEL_SEED. A failure names its
seed, and that seed fails again.
"""

from __future__ import annotations

import os

import pytest

from tests.model.reactions_model import TROUBLES, run_seed
from tests.support.plaza import World

RUNS = int(os.environ.get("PLAZA_MODEL_RUNS", "150"))
FIRST = int(os.environ.get("PLAZA_MODEL_SEED", "0"))


@pytest.mark.parametrize("trouble", TROUBLES)
def test_answers_hold_at_every_moment_and_when_it_is_quiet_all_stores_agree(
    trouble: str, plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(FIRST + 1, FIRST + 1 + -(-RUNS // len(TROUBLES))):
        run_seed(seed, trouble, plaza, monkeypatch)

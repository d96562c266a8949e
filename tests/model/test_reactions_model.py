"""The model of reactions: random requests and faults on the product's Lua and SQL.

At every step the total in Redis is the number of actors whose newest decision is on, the state of
an actor agrees with it, and each code of the gate is right about the change. At the end Redis,
counters, rows, log, lists and totals of users agree, also with each actor's last result.

A run is one seed. ``python -m tests.model`` plays thousands of runs and the mutations of the
protocol; this test plays PLAZA_MODEL_RUNS, starting after PLAZA_MODEL_SEED. A failure shows
its seed and can be repeated with it.
"""

from __future__ import annotations

import os

import pytest

from tests.model.mutations import MUTATIONS, mutate
from tests.model.reactions_model import TROUBLES, run_seed
from tests.model.stories import STORIES, run_story
from tests.support.depth import choose, read_count
from tests.support.plaza import World
from tests.support.servers import IS_CLUSTER

RUNS = read_count("PLAZA_MODEL_RUNS", 10, 90)
FIRST = int(os.environ.get("PLAZA_MODEL_SEED", "0"))


@pytest.mark.sampled
@pytest.mark.parametrize("trouble", TROUBLES)
def test_replies_are_right_at_every_step_and_all_stores_agree_at_the_end(
    trouble: str, plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(FIRST + 1, FIRST + 1 + -(-RUNS // len(TROUBLES))):
        run_seed(seed, trouble, plaza, monkeypatch)


@pytest.mark.skipif(IS_CLUSTER, reason="stories choose the time and the masters of a single Redis")
@pytest.mark.sampled
@pytest.mark.parametrize("story", STORIES)
def test_a_story_ends_with_right_answers(
    story: str, plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No divisor of how a story counts its moments: of each of its dimensions some are played.
    run_story(story, plaza, monkeypatch, step=choose(5, 1))


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_changes_text_that_its_script_has(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(name)(monkeypatch)

"""A seeded sample of the triples, and every known failure once.

``python -m tests.faults`` plays all of them. PLAZA_FAULTS_SEED=7 draws another sample.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from tests.faults.expected import EXPECTED, Expected, find_expected
from tests.faults.harness import open_harness
from tests.faults.play import Player
from tests.faults.use_cases import REACH_NO_STORE, ROUTES, USE_CASES, UseCase
from tests.support.depth import choose
from tests.support.servers import IS_CLUSTER

SEED = int(os.environ.get("PLAZA_FAULTS_SEED", "20261121"))
SAMPLED_ROUTES, SAMPLED_FUNCTIONS, TRIPLES = choose((3, 1, 2), (16, 8, 6))

pytestmark = pytest.mark.skipif(IS_CLUSTER, reason="the harness restores a single Redis")


def sample() -> list[UseCase]:
    """Return some use cases, of routes and of functions, that reach a store."""
    dice = random.Random(SEED)
    without_calls = [case for case in USE_CASES if case.name in REACH_NO_STORE]
    functions = [case for case in USE_CASES if case not in [*ROUTES, *without_calls]]
    return [*dice.sample(ROUTES, SAMPLED_ROUTES), *dice.sample(functions, SAMPLED_FUNCTIONS)]


@pytest.fixture(scope="module")
def player(redis_url: str, mysql_url: str) -> Iterator[Player]:
    with open_harness(redis_url, mysql_url) as harness:
        yield Player(harness)


@pytest.mark.sampled
@pytest.mark.parametrize("case", sample(), ids=lambda case: case.name)
def test_lost_replies_lose_nothing(player: Player, case: UseCase) -> None:
    assert player.reference(case).calls, "the transport sees no calls"
    triples = [t for t in player.triples(case) if find_expected(t) is None]
    chosen = random.Random(SEED).sample(triples, min(TRIPLES, len(triples)))
    failed = {triple.id: problems for triple in chosen if (problems := player.play(triple))}
    assert not failed


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda expected: expected.id)
def test_known_failure_still_fails(player: Player, expected: Expected) -> None:
    case = next(case for case in USE_CASES if expected.covers(case))
    matching = [triple for triple in player.triples(case) if expected.matches(triple)]
    assert matching, "no call of the use case matches: remove the entry"
    assert any(player.play(triple) for triple in reversed(matching)), "it passes: remove the entry"


def test_missing_announcement_is_found(player: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness detects a deletion that Redis never gets because its process was killed."""
    monkeypatch.setattr("plaza.core.targets.announce.announce_write", lambda *_: False)
    [case] = [case for case in USE_CASES if case.name == "DELETE /posts/{post_id}"]
    monkeypatch.setattr(player, "_references", {})
    killed = [t for t in player.triples(case) if t.fault.mode == "killed"]
    problems = [player.play(t) for t in killed if t.call.text.startswith("COMMIT")]
    assert any("GET /posts/{post_id}" in line for problem in problems for line in problem), problems

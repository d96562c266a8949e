"""A deploy and a rollback between the baseline and the working tree, and what the harness finds.

PLAZA_VERSIONS_SEED=7 plays other traffic; ``python -m tests.versions`` plays more.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.paths import ROOT, CommandError
from local.stack.servers import Server
from plaza.infra.mysql import mysql
from tests.support.depth import choose
from tests.support.servers import IS_CLUSTER
from tests.versions import SUSPENDED, trees
from tests.versions.deployment import (
    NEW,
    OLD,
    Deployment,
    Phase,
    Version,
    find_problem,
    open_deployment,
)
from tests.versions.mutations import MUTATIONS, Mutation
from tests.versions.rollout import roll_out, roll_out_until_shared
from tests.versions.traffic import Traffic
from tests.versions.use_cases import DIRECTIONS, list_use_cases, play_use_case, prepare
from tests.versions.values import MIN_WRITES, Values, add_commands, describe, shape_of

SEED = int(os.environ.get("PLAZA_VERSIONS_SEED", "20"))
SAMPLED_USE_CASES = choose(1, 5)
SHORT = (
    Phase("old only", (OLD,), (OLD,)),
    Phase("canary", (OLD, NEW), (NEW,)),
    Phase("consumers rolled back", (NEW, OLD), (OLD,)),
)

MAX_ROUNDS = 3

pytestmark = [
    pytest.mark.skipif(IS_CLUSTER, reason="MONITOR shows a single Redis"),
    pytest.mark.skipif(bool(SUSPENDED), reason=SUSPENDED),
]


@pytest.fixture(scope="module")
def baseline() -> Path:
    return trees.extract(trees.read_baseline())


@pytest.fixture(scope="module")
def deployment(redis_url: str, mysql_url: str, baseline: Path) -> Iterator[Deployment]:
    with open_deployment(redis_url, mysql_url, baseline, ROOT, seed=SEED) as opened:
        yield opened


@pytest.mark.deep
def test_neighbouring_versions_agree_during_a_deploy_and_a_rollback(
    deployment: Deployment, redis_server: Server
) -> None:
    assert roll_out_until_shared(Traffic(deployment), redis_server.url, Values()) == []


@pytest.mark.sampled
def test_use_case_prepared_by_one_version_is_carried_out_by_the_other(
    deployment: Deployment,
) -> None:
    dice = random.Random(SEED)
    base = prepare(deployment)
    for case in dice.sample(list_use_cases(deployment), SAMPLED_USE_CASES):
        assert play_use_case(deployment, case, base, *dice.choice(DIRECTIONS)) == []


@pytest.mark.sampled
@pytest.mark.parametrize("name", choose([*MUTATIONS][:1], [*MUTATIONS]))
def test_incompatible_change_is_found(
    deployment: Deployment, baseline: Path, tmp_path: Path, name: str
) -> None:
    mutation = MUTATIONS[name]

    def is_found() -> bool:
        return any(mutation.problem in problem for problem in deployment.problems)

    changed = trees.copy_changed(baseline, tmp_path, mutation.changes, mutation.added)
    try:
        with deployment.replacing_new(changed, SEED):
            traffic = Traffic(deployment)
            for _ in range(MAX_ROUNDS):  # what crosses in one round is chance
                if not is_found():
                    roll_out(traffic, SHORT, mutation.steps, is_over=is_found)
    finally:
        undo(mutation)
    assert is_found(), deployment.problems


def undo(mutation: Mutation) -> None:
    for statement in mutation.undo:
        mysql.write(statement)


def test_process_refuses_code_of_another_checkout(
    deployment: Deployment, baseline: Path, tmp_path: Path
) -> None:
    """Given a checkout without a layer, whose process imports the layer of the working tree, which
    lacks names by now."""
    changed = trees.copy_changed(baseline, tmp_path, {}, {})
    (changed / "layers").rename(tmp_path / "moved")
    with (
        pytest.raises(CommandError, match=r"(?s)old version .* does not start .*named 'plaza"),
        deployment.starting(Version(OLD, changed)),
    ):
        pass


def test_missing_package_is_named(deployment: Deployment, baseline: Path, tmp_path: Path) -> None:
    """Given a version that needs a package which this environment lacks."""
    app = "functions/api/auth/app.py"
    before = "from __future__ import annotations\n"
    changed = trees.copy_changed(
        baseline, tmp_path, {app: {before: before + "import a_package_of_then\n"}}, {}
    )
    with (
        pytest.raises(CommandError, match=r"(?s)packages of this working tree.*a_package_of_then"),
        deployment.starting(Version(OLD, changed)),
    ):
        pass


def test_unknown_commit_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"0000000 is not in this clone.*fetch-depth: 0"):
        trees.extract("0000000", tmp_path)


def test_baseline_is_an_ancestor() -> None:
    assert trees.is_ancestor(trees.read_baseline())


def test_failures_are_found_in_logs() -> None:
    assert find_problem('{"event": "batch_consumed", "batch_size": 3}') == ""
    assert "RedisDown" in find_problem('{"event": "message_unsent", "error": "RedisDown"}')
    assert find_problem("Traceback (most recent call last):")


def test_shape_of_a_key_has_no_numbers() -> None:
    shapes = {
        "{12}:like:post:9000001:meta": "<reaction>:#:meta",
        "{12}:user:257060062093258088:checkins:2026-11": "user:#:checkins:#",
        "{3}:session:" + "0a" * 32: "session:<token>",
        "{3}:shops:filter": "shops:filter",
    }
    assert {key: shape_of(key) for key in shapes} == shapes


def test_value_that_only_one_version_read_is_found() -> None:
    """Given a value that a script of the old version wrote and the new version read."""
    values = Values()
    lines = [
        '1.1 [0 127.0.0.1:1] "CLIENT" "SETNAME" "old"',
        '1.2 [0 127.0.0.1:2] "CLIENT" "SETNAME" "new"',
        '1.3 [0 127.0.0.1:1] "EVALSHA" "abc" "1" "{1}:a:1"',
        '1.4 [0 lua] "HSET" "{1}:a:1" "x" "1"',
        '1.5 [0 127.0.0.1:2] "HGETALL" "{1}:a:1"',
        *['1.6 [0 127.0.0.1:2] "SET" "{1}:b" "1"'] * MIN_WRITES,
        '1.7 [0 127.0.0.1:1] "STRLEN" "{1}:b"',
    ]
    add_commands(values, [line.encode() for line in lines])
    assert values.crossed["a:#"] == {("old", "new")}
    assert describe(values.find_missing((OLD, NEW))) == ["b: new -> old"]

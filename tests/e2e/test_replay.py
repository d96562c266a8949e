"""A replay with duplicates and killed consumers on the deployed stack, and its audit.

Commands run in processes of their own.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli.paths import ROOT
from local.audit.backlog import shorten_visibility_timeout
from local.load.background import kill_workers
from local.load.demo import make_interactions
from local.load.interactions import FILES, Interaction, plan
from local.load.replay import KILL_EVERY_S
from local.load.requests import predict
from local.stack.servers import connect_mysql
from local.stack.stack import Stack
from local.stack.tokens import open_sessions
from tests.e2e.client import Client, wait_until
from tests.support.depth import choose

pytestmark = pytest.mark.quiet

SIZE, RATE = choose((120, 40), (300, 60))  # a rate that is slow enough to kill some consumers


@pytest.fixture(autouse=True)
def empty_dlqs(stack: Stack) -> None:
    """Purge the dead letters of other tests, so that the audit is clean."""
    sqs = stack.connect("sqs")
    for name, url in stack.queues.items():
        if name.endswith("_dlq"):
            sqs.purge_queue(QueueUrl=url)


def run(stack: Stack, *command: str, environment: dict[str, str] | None = None) -> tuple[int, str]:
    """Run ``python -m local``; return (exit status, stdout, or stderr if that is empty)."""
    completed = subprocess.run(
        [sys.executable, "-m", "local", "--dir", str(stack.directory), *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "Traceback" not in completed.stderr, completed.stderr
    return completed.returncode, completed.stdout or completed.stderr


def replay(stack: Stack, path: Path, *options: str) -> dict[str, Any]:
    """Replay a file, check that it ends clean, and return its report."""
    status, output = run(stack, "replay", str(path), "--json", *options)
    report: dict[str, Any] = json.loads(output)
    assert (status, report["clean"]) == (0, True), output
    return report


@pytest.mark.sampled
def test_a_skewed_replay_with_duplicates_and_killed_consumers_ends_clean(
    stack: Stack, tmp_path: Path
) -> None:
    path = tmp_path / "skewed.csv"
    interactions = make_interactions(40, 25, SIZE, first_id=8_000_001, seed=11)
    FILES.write(path, interactions)
    _, after = predict(plan(interactions), set())
    likes = sum(reaction.kind == "like" for reaction in after)

    report = replay(stack, path, "--duplicates", "0.2", "--kill-consumers", "--rate", str(RATE))

    assert report["killed"] >= 1
    assert report["duplicates"] > SIZE // 10
    assert report["totals"]["like"] == {"file": likes, "rows": likes, "api": likes}
    # A like and its unlike that are stored in reverse order after a kill change nothing.
    assert report["changed"] == report["expected"] >= report["persisted"]
    assert (report["wrong"], report["failures"], report["differences"]) == ([], [], [])

    again = replay(stack, path, "--limit", "100")
    assert again["totals"]["like"]["rows"] > 0

    status, output = run(stack, "audit", "--json", "--wait")
    audit = json.loads(output)
    assert (status, audit["clean"], audit["drift"], audit["differences"]) == (0, True, 0, [])
    assert audit["accepted"] == audit["persisted"] >= report["persisted"]


@pytest.mark.deep
def test_the_demo_crowd_ends_with_a_clean_audit(stack: Stack) -> None:
    play = (
        "import sys; from pathlib import Path; from cli.paths import add_layer_to_path;"
        " add_layer_to_path(); from local.load import demo; from local.stack.stack import Stack;"
        " demo.play(Stack.load(Path(sys.argv[1])))"
    )
    completed = subprocess.run(
        [sys.executable, "-c", play, str(stack.directory)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert "clean" in completed.stdout
    assert "✗" not in completed.stdout


def test_the_audit_prints_a_table(stack: Stack) -> None:
    status, output = run(stack, "audit", "--wait")
    assert (status, "likes" in output, "drift" in output) == (0, True, True)


def test_an_audit_reports_a_wrong_like_counter(stack: Stack, tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    post = 7_000_001
    FILES.write(path, [Interaction(post, post, 4.0, 0)])
    replay(stack, path)
    move = "UPDATE counter SET total = total + {} WHERE target_id = %s AND kind = 'like'"
    _execute(stack, move.format("1"), post)
    try:
        status, output = run(stack, "audit", "--json")
    finally:
        _execute(stack, move.format("-1"), post)
    audit = json.loads(output)
    # A replay rolls the log up, so the hours of the post differ, too.
    assert (status, audit["clean"], audit["drift"]) == (1, False, 2)
    assert f"like post:{post}: Redis 1, counter 2, rows 1" in audit["differences"]
    assert f"hours of post:{post}: rolled up 1, likes 2" in audit["differences"]


def test_an_audit_beside_a_stack_compares_the_kinds_of_the_stack(
    stack: Stack, user: Callable[[int], Client], add: Callable[..., int]
) -> None:
    """The environment of the audit does not name them."""
    post = add()
    path = f"/targets/post/{post}/reactions/bookmark/me"
    client = user(3_100_001)
    assert client("PUT", path).json["total"] == 1
    wait_until(
        "the bookmark is stored",
        lambda: _execute(
            stack, "SELECT 1 FROM counter WHERE target_id = %s AND kind = 'bookmark'", post
        ),
    )
    move = "UPDATE counter SET total = total + {} WHERE target_id = %s AND kind = 'bookmark'"
    declared = "PLAZA_KINDS", "PLAZA_TARGET_TYPES"
    environment = {name: text for name, text in os.environ.items() if name not in declared}
    _execute(stack, move.format("1"), post)
    try:
        status, output = run(stack, "audit", "--json", environment=environment)
    finally:
        _execute(stack, move.format("-1"), post)
    audit = json.loads(output)
    assert (status, audit["clean"]) == (1, False)
    assert f"bookmark post:{post}: Redis 1, counter 2, rows 1" in audit["differences"]


def test_an_invalid_line_is_refused_with_its_number(stack: Stack, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("user_id,item_id,rating,timestamp\n1,2,4,5\n1,x,4,5\n")
    assert run(stack, "replay", str(path)) == (
        1,
        "plaza: bad.csv, line 3: item_id is 'x', not a whole number from 1 to 2^63-1\n",
    )


def _execute(stack: Stack, statement: str, *args: int) -> int:
    connection = connect_mysql(stack.mysql_url)
    try:
        with connection.cursor() as cursor:
            return cursor.execute(statement, args)
    finally:
        connection.close()


@pytest.mark.deep
def test_likes_on_targets_of_the_app_under_kills_end_clean(stack: Stack) -> None:
    """First likes make their targets, a fifth is sent twice, and a tenth is taken back."""
    targets, users = 500, 40
    first = 8_100_001
    tokens = open_sessions(stack, range(first, first + users))
    likes = [
        (token, f"/targets/clip/{8_100_000 + n}/reactions/like/me")
        for token in tokens
        for n in range(targets)
    ]
    random.Random(58).shuffle(likes)

    def send(number: int) -> None:
        token, path = likes[number]
        methods = ["PUT", *["PUT"] * (number % 5 == 0), *["DELETE"] * (number % 10 == 0)]
        headers = {"authorization": f"Bearer {token}"}
        for method in methods:
            wait_until(
                "it is accepted",
                lambda method=method: api.request(method, path, headers=headers).is_success,  # type: ignore[misc]
            )

    with (
        shorten_visibility_timeout(stack, "reactions", "acknowledgements"),
        kill_workers(stack, "SaveReactions", KILL_EVERY_S, 58) as killed,
        httpx.Client(base_url=stack.base_url, timeout=60) as api,
        ThreadPoolExecutor(8) as pool,
    ):
        list(pool.map(send, range(len(likes))))
    status, output = run(stack, "audit", "--json", "--wait")
    audit = json.loads(output)
    assert (status, audit["clean"], audit["differences"]) == (0, True, []), output
    assert killed
    with closing(connect_mysql(stack.mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT COUNT(*), COUNT(DISTINCT target_id), COUNT(DISTINCT external_id)
            FROM reaction
            JOIN external_target ON type = target_type AND id = target_id
            WHERE target_type = 'clip'
              AND state = 1
              AND external_id LIKE '81%'
            """
        )
        assert cursor.fetchone() == (len(likes) * 9 // 10, targets, targets)

"""Reconciliation on the deployed stack finds and repairs drift."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import redis

from cli.paths import ROOT
from local.stack.stack import Stack
from plaza.core.reactions import LIKE, Target
from plaza.core.reactions.redis_keys import keys_of
from tests.e2e.client import Client, wait_until
from tests.e2e.stack_runner import AUTHOR

pytestmark = pytest.mark.quiet


def drift(stack: Stack) -> tuple[int, dict[str, Any]]:
    """Return (exit status, report) of ``python -m ops drift --json``."""
    completed = subprocess.run(
        [sys.executable, "-m", "ops", "--dir", str(stack.directory), "drift", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert completed.stdout, completed.stderr
    return completed.returncode, json.loads(completed.stdout)


def test_drift_is_found_repaired_and_reported_to_admins(
    stack: Stack,
    add: Callable[..., int],
    user: Callable[[int], Client],
    rows: Callable[..., Any],
    base_url: str,
    sign_in: Callable[..., str],
) -> None:
    first, second = add(), add()
    for post in (first, second):
        assert user(6_110_001)("PUT", f"/posts/{post}/likes/me").json["likes"] == 1
    saved = (
        "SELECT COUNT(*) FROM counter WHERE target_id IN (%s, %s) AND kind = 'like' AND total = 1"
    )
    wait_until("both are saved", lambda: rows(saved, first, second) == ((2,),), 120)
    drift(stack)  # repairs drift of other tests

    rows("UPDATE counter SET total = 5 WHERE target_id = %s AND kind = 'like'", first)
    rows("UPDATE user_counter SET likes_received_total = 77 WHERE user_id = %s", AUTHOR)
    with redis.Redis.from_url(stack.redis_url) as client:
        client.hset(keys_of(LIKE.name, Target("post", second)).meta, "base", 9)
    status, report = drift(stack)
    results = {(e["reason"], e["metric"], e["id"]) for e in report["examples"]}
    assert {
        ("counter", "like", str(first)),
        ("counter", "likes_received", str(AUTHOR)),
        ("total", "like", str(second)),
    } <= results
    assert (status, report["settled"]) == (0, True)
    assert report["repaired"] == report["differences"] >= 3

    for post in (first, second):
        assert user(6_110_001)("GET", f"/posts/{post}").json["likes"] == 1
    again, clean = drift(stack)
    assert (again, clean["differences"], clean["examples"]) == (0, 0, [])
    assert clean["relations"] >= 2

    admin = Client(base_url, sign_in(6_110_002, role="admin"))
    [newest, before] = admin("GET", "/ops/reconciliations?limit=2").json["items"]
    assert (newest["id"], before["id"]) == (clean["id"], report["id"])
    started = admin("POST", "/ops/reconciliations")
    assert (started.status, started.json["ended_at"]) == (202, None)
    assert user(6_110_001)("GET", "/ops/reconciliations").status == 403
    wait_until(
        "the run has ended",
        lambda: admin("GET", "/ops/reconciliations?limit=1").json["items"][0]["ended_at"],
        60,
    )

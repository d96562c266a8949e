"""Check-ins, rate limits and the report of large keys on the deployed stack."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from cli.paths import ROOT
from local.stack.stack import Stack
from plaza.infra.http.limits import Bucket
from tests.e2e.client import Client, problem, wait_until

ADA, BO, CY = 5_960_001, 5_960_002, 5_960_003


@pytest.fixture
def in_redis(stack: Stack) -> Iterator[Any]:
    """The stack's Redis."""
    with redis.Redis.from_url(stack.redis_url, decode_responses=True) as client:
        yield client


def test_a_check_in_uses_the_users_time_zone(
    user: Callable[[int], Client], rows: Callable[..., Any]
) -> None:
    ada = user(ADA)
    assert ada("PATCH", "/users/me", {"time_zone": "Pacific/Kiritimati"}).json["time_zone"] == (
        "Pacific/Kiritimati"
    )
    first = ada("PUT", "/checkins/today")
    local_time = datetime.now(UTC) + timedelta(hours=14)
    assert first.status == 200
    today = first.json["today"]
    assert abs(datetime.fromisoformat(today).date() - local_time.date()) <= timedelta(days=1)
    assert (first.json["streak"], first.json["days"]) == (1, [int(today[-2:])])
    assert ada("PUT", "/checkins/today").json == first.json
    assert ada("GET", f"/checkins?month={today[:7]}").json == first.json
    saved = wait_until(
        "the check-in is saved",
        lambda: rows("SELECT CAST(day AS CHAR) FROM checkin WHERE user_id = %s", ADA),
    )
    assert saved == ((today,),)
    assert ada("GET", "/checkins").json == first.json, "the current month"
    assert ada("PATCH", "/users/me", {"time_zone": "Mars/Base"}).status == 400


def test_a_streak_is_rebuilt_after_redis_lost_a_users_keys(
    user: Callable[[int], Client], rows: Callable[..., Any], in_redis: Any
) -> None:
    bo = user(BO)
    today = datetime.fromisoformat(bo("PUT", "/checkins/today").json["today"]).date()
    wait_until("it is saved", lambda: rows("SELECT day FROM checkin WHERE user_id = %s", BO))
    for back in range(1, 40):
        day = today - timedelta(days=back)
        rows("INSERT INTO checkin (user_id, day, version) VALUES (%s, %s, 1)", BO, day)
    wait_until("nothing is pending", lambda: not in_redis.keys(f"*:user:{BO}:checkins:outbox"))
    in_redis.delete(*in_redis.keys(f"*:user:{BO}:checkins*"))
    again = bo("PUT", "/checkins/today")
    assert (again.status, again.json["streak"]) == (200, 40)


def test_a_caller_over_the_limit_is_refused_and_others_are_not(
    user: Callable[[int], Client], in_redis: Any
) -> None:
    cy = user(CY)
    assert cy("GET", "/users/me").status == 200
    per_s = 100_000  # the limit of local/stack/deployment.py
    key = Bucket("reads", str(CY), per_s, per_s).key
    seconds, microseconds = in_redis.time()
    in_redis.set(key, seconds * 1_000_000 + microseconds + 8_000_000)  # full in 8 s, empty for 7
    try:
        refused = cy("GET", "/users/me")
        assert (refused.status, problem(refused)) == (429, "too-many-requests")
        assert refused.headers["retry-after"] == "7"
        assert cy("GET", "/feed").status == 429
        assert cy("PUT", "/checkins/today").status == 200, "a write is another group"
        assert user(BO)("GET", "/users/me").status == 200
    finally:
        in_redis.delete(key)
    assert cy("GET", "/users/me").status == 200


def test_large_keys_are_reported(stack: Stack, in_redis: Any) -> None:
    in_redis.sadd("{1}:e2e:big", *range(10_001))
    command = [sys.executable, "-m", "ops", "--dir", str(stack.directory), "keys"]
    try:
        shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        as_json = subprocess.run([*command, "--json"], cwd=ROOT, capture_output=True, text=True)
    finally:
        in_redis.delete("{1}:e2e:big")
    assert shown.returncode == as_json.returncode == 1, shown.stderr
    assert "too big" in shown.stdout
    report = json.loads(as_json.stdout)
    assert "{1}:e2e:big" in [row["key"] for row in report["oversized"]]
    assert report["complete"]

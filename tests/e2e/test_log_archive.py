"""The archives of the reaction log and of orders on the deployed stack; recounts from the log."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from cli.paths import ROOT
from local.audit.audit import audit_when_quiet
from local.stack.stack import Stack
from plaza.infra.derived import ids
from tests.e2e.client import Client, wait_until

pytestmark = pytest.mark.quiet
FIRST = 5_360_001
DAY_US = 86_400_000_000
TIMEOUT_S = 120  # many functions start at the same time
Rows = Callable[..., tuple[Any, ...]]


def run(stack: Stack, *words: str) -> tuple[int, dict[str, Any]]:
    """Run ``python -m ops ... --json``; return (exit status, report)."""
    command = [sys.executable, "-m", "ops", "--dir", str(stack.directory), *words, "--json"]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert completed.stdout, completed.stderr
    return completed.returncode, json.loads(completed.stdout)


@pytest.fixture
def send(stack: Stack) -> Callable[[int, int, int, int], None]:
    """``send(post_id, actor, state, days_ago)`` queues a late event."""
    sqs = stack.connect("sqs")
    now_us = time.time_ns() // 1000

    def one(post_id: int, actor: int, state: int, days_ago: int) -> None:
        event = {
            "protocol": 2, "target_type": "post", "target_id": post_id, "kind": "like",
            "actor_id": actor, "state": state, "version": now_us - days_ago * DAY_US,
        }  # fmt: skip
        sqs.send_message(QueueUrl=stack.queues["reactions"], MessageBody=json.dumps(event))

    return one


def in_log(rows: Rows, post_id: int) -> int:
    [(count,)] = rows("SELECT COUNT(*) FROM reaction_log WHERE target_id = %s", post_id)
    return int(count)


def test_closed_days_are_archived_and_still_recounted(
    stack: Stack, add: Callable[..., int], rows: Rows, send: Any
) -> None:
    post_id = add()
    for actor in range(5):
        send(post_id, FIRST + actor, 1, 20)
    wait_until("they are saved", lambda: in_log(rows, post_id) == 5, TIMEOUT_S)
    send(post_id, FIRST, 0, 12)
    send(post_id, FIRST + 9, 1, 1)
    wait_until("they are saved", lambda: in_log(rows, post_id) == 7, TIMEOUT_S)
    send(post_id, FIRST + 10, 1, 0)
    wait_until("it is saved", lambda: in_log(rows, post_id) == 8, TIMEOUT_S)
    stack.invoke("RollUpLikes", {})
    for _ in range(2):  # rows since the last two checks of Redis stay in MySQL; a minute passes
        rows("UPDATE redis_epoch SET checked_at = checked_at - INTERVAL 1 MINUTE")
        stack.invoke("SweepOutbox", {})

    completed = stack.invoke("MaintainLog", {})
    assert (completed["corrupt"], completed["unsplit"]) == (0, 0)
    partitions = rows(
        "SELECT COUNT(*) FROM information_schema.partitions"
        " WHERE table_name = 'reaction_log' AND table_schema = DATABASE()"
    )
    assert partitions[0][0] >= 15, "another run may have created them"
    assert completed["events"] >= 6
    assert in_log(rows, post_id) == 2
    again = stack.invoke("MaintainLog", {})
    assert (again["created"], again["events"]) == (0, 0)

    bucket = stack.environment()["PLAZA_ARCHIVE_BUCKET"]
    result = stack.connect("s3").list_objects_v2(Bucket=bucket, Prefix="reaction_log/date=")
    assert len([o for o in result["Contents"] if "/manifest-" in o["Key"]]) >= 2

    send(post_id, FIRST + 1, 1, 20)  # a repeat, of a dropped day
    send(post_id, FIRST + 20, 1, 20)  # a late event of that day
    wait_until("they are logged", lambda: in_log(rows, post_id) == 4, TIMEOUT_S)

    assert run(stack, "rebuild", "--target", f"post:{post_id}")[0] == 0
    status, report = run(stack, "rebuild", "--from-log", "--target", f"post:{post_id}")
    assert (status, report["agrees"], report["contradicting"]) == (0, True, 0)
    assert report["events_archived"] >= 6
    then = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 15 * 86_400))
    status, report = run(
        stack, "rebuild", "--from-log", "--as-of", then, "--target", f"post:{post_id}"
    )
    assert status == 0
    assert report["differences"] == [
        {"of": f"post:{post_id}", "name": "like", "counter": 7, "recounted": 6}
    ]
    audit = audit_when_quiet(stack)
    assert [line for line in audit.differences if str(post_id) in str(line)] == []


def test_an_old_order_is_archived_and_its_buyer_reads_it(
    user: Callable[[int], Client], stack: Stack, rows: Rows
) -> None:
    buyer, voucher = 5_350_001, 5_350_002
    order = ids.first_id_at(int(time.time()) - 90 * 86_400)
    rows("INSERT IGNORE INTO shop (id, name) VALUES (%s, 'Bistro')", voucher)
    rows(
        "INSERT INTO voucher (id, shop_id, title, price_cents, initial_stock, stock, opens_at,"
        " closes_at, created_by, finalized_at) VALUES (%s, %s, 'Dinner', 1, 1, 0, NOW() - INTERVAL"
        " 90 DAY, NOW() - INTERVAL 89 DAY, 1, NOW() - INTERVAL 88 DAY)",
        voucher, voucher,
    )  # fmt: skip
    rows(
        "INSERT INTO voucher_order (order_id, voucher_id, buyer_id, holder_id, used_at, used_by)"
        " VALUES (%s, %s, %s, %s, NOW() - INTERVAL 80 DAY, 1)",
        order, voucher, buyer, buyer,
    )  # fmt: skip
    before = user(buyer)("GET", f"/orders/{order}")
    assert (before.status, before.json["status"]) == (200, "used")
    assert stack.invoke("MaintainLog", {"min_orders": 1})["orders_archived"] >= 1
    assert rows("SELECT 1 FROM voucher_order WHERE order_id = %s", order) == ()
    assert user(buyer)("GET", f"/orders/{order}").json == before.json
    assert user(buyer + 9)("GET", f"/orders/{order}").status == 404


def test_rebuild_reports_a_wrong_counter(stack: Stack, add: Callable[..., int], rows: Rows) -> None:
    post_id = add()
    rows(
        "INSERT INTO counter (target_type, target_id, kind, total, version, ranked)"
        " VALUES ('post', %s, 'like', 3, 1, 3)",
        post_id,
    )
    command = [sys.executable, "-m", "ops", "--dir", str(stack.directory), "rebuild"]
    of_post = [*command, "--target", f"post:{post_id}"]
    try:
        for source in ([], ["--from-log"]):
            completed = subprocess.run(
                [*of_post, *source], cwd=ROOT, capture_output=True, text=True
            )
            assert completed.returncode == 1, completed.stderr
            assert f"like of post:{post_id}" in completed.stdout
        assert "the log has no comments and posts" in completed.stdout
    finally:
        rows("DELETE FROM counter WHERE target_id = %s", post_id)
    refused = subprocess.run(
        [*command, "--as-of", "2026-11-21T08:30:00Z"], cwd=ROOT, capture_output=True, text=True
    )
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "--from-log" in refused.stderr

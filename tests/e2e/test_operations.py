"""Operators on the deployed stack: find a request, list dead letters, redrive them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from cli.paths import ROOT
from local.stack.stack import Stack
from plaza.core.reactions.model import ReactionEvent, ReactionKey
from plaza.core.reactions.queues import REACTIONS
from tests.e2e.client import Client, problem, wait_until

ADMIN, ADA = 5_200_001, 5_200_002
QUEUE = "/ops/queues/reactions"


def local(stack: Stack, *command: str, program: str = "local") -> subprocess.CompletedProcess[str]:
    whole = [sys.executable, "-m", program, "--dir", str(stack.directory), *command]
    return subprocess.run(whole, cwd=ROOT, capture_output=True, text=True)


ops = partial(local, program="ops")


def shown(admin: Client) -> list[dict[str, Any]]:
    reply = admin("GET", f"{QUEUE}/dead-letters?limit=100")
    assert (reply.status, reply.json["next"]) == (200, None)
    return list(reply.json["items"])


def test_a_redriven_event_is_stored_and_an_unreadable_message_is_dead_lettered_again(
    stack: Stack,
    admin: Client,
    dead_reactions: Callable[..., None],
    add: Callable[..., int],
    rows: Callable[..., Any],
) -> None:
    post = add()
    attributes = {"request_id": {"DataType": "String", "StringValue": "my-poison-001"}}
    stack.connect("sqs").send_message(
        QueueUrl=stack.queues["reactions"],
        MessageBody='{"protocol": 2, "kind": "like", "phone": "+8613800138000"}',
        MessageAttributes=attributes,
    )
    [letter] = wait_until("the unreadable message is in the DLQ", lambda: shown(admin))
    assert letter["body"] == {"protocol": 2, "kind": "like", "phone": "…"}
    assert letter["request_id"] == "my-poison-001"
    assert "target_type" in letter["cause"]

    # As after an outage of MySQL.
    event = ReactionEvent(ReactionKey("post", post, "like", ADA), True, time.time_ns() // 1000)
    dead_reactions(REACTIONS.encode(event), request_id="my-like-was-late")
    assert len(shown(admin)) == 2
    listed = {q["name"]: q for q in admin("GET", "/ops/queues").json["items"]}
    assert listed["reactions"]["dead_letters"] == 2
    [chosen] = [item["id"] for item in shown(admin) if item["request_id"] == "my-like-was-late"]

    reply = admin("POST", f"{QUEUE}/redrives", {"ids": [chosen, "not-there"]})
    assert reply.json == {"moved": 1, "remaining": 1, "missing": ["not-there"], "delayed": False}
    sql = "SELECT request_id FROM reaction_log WHERE target_id = %s"
    saved = wait_until("it is saved", lambda: rows(sql, post))
    assert saved == (("my-like-was-late",),)

    # The unreadable message is moved once and is dead-lettered again.
    completed = ops(stack, "dlq", "redrive", "reactions")
    assert (completed.returncode, completed.stdout.partition(",")[0]) == (0, "1 sent back"), (
        completed.stderr
    )
    again = wait_until(
        "it is in the DLQ again",
        lambda: [item for item in shown(admin) if item["id"] != letter["id"]],
    )
    assert [item["request_id"] for item in again] == ["my-poison-001"]
    printed = json.loads(ops(stack, "dlq", "show", "reactions", "--limit", "5").stdout)
    assert (printed["body"], printed["cause"]) == (letter["body"], letter["cause"])
    assert ops(stack, "dlq", "list").returncode == 1
    assert ops(stack, "queues", "--json").returncode == 1
    lines = (stack.directory / "logs" / "operator.log").read_text().splitlines()
    acts = [entry for line in lines if "operator_id" in (entry := json.loads(line))]
    assert {"dead_letters_listed", "messages_redriven"} <= {act["event"] for act in acts}
    assert {act["operator_id"] for act in acts} == {"ops"}


def test_only_admins_may_read_and_redrive_queues(
    anonymous: Client,
    user: Callable[[int], Client],
    admin: Client,
    dead_reactions: Callable[..., None],
) -> None:
    dead_reactions("{}")
    for client, status in ((anonymous, 401), (user(ADA), 403)):
        assert client("GET", "/ops/queues").status == status
        assert client("GET", f"{QUEUE}/dead-letters").status == status
        assert client("POST", f"{QUEUE}/redrives", {}).status == status
        assert client("POST", f"{QUEUE}/purges", {"ids": ["a"]}).status == status
        assert client("POST", "/ops/sweeps", {}).status == status
    assert len(shown(admin)) == 1
    [letter] = shown(admin)
    assert problem(admin("POST", f"{QUEUE}/purges", {})) == "invalid-request"
    purged = admin("POST", f"{QUEUE}/purges", {"ids": [letter["id"], "not-there"]})
    assert purged.json == {"purged": 1, "remaining": 0, "missing": ["not-there"]}
    assert set(admin("POST", "/ops/sweeps", {}).json) == {"reactions", "checkins"}
    assert problem(admin("GET", "/ops/queues/orders/dead-letters")) == "queue-has-consumer"
    assert problem(admin("POST", "/ops/queues/nothing/redrives", {})) == "not-found"
    assert problem(admin("POST", f"{QUEUE}/redrives", {"limit": 0})) == "invalid-request"


def test_a_request_is_found_by_its_id_from_the_client_to_the_row(
    stack: Stack, user: Callable[[int], Client], add: Callable[..., int], rows: Callable[..., Any]
) -> None:
    post, request_id = add(), f"support-{time.time_ns()}"
    sent = {"X-Request-Id": request_id, "Origin": "https://app.example"}
    reply = user(ADA)("PUT", f"/posts/{post}/likes/me", headers=sent)
    assert (reply.status, reply.headers["x-request-id"]) == (200, request_id)
    assert "x-request-id" in reply.headers["access-control-expose-headers"]
    sql = "SELECT actor_id FROM reaction_log WHERE request_id = %s"
    assert wait_until("it is saved", lambda: rows(sql, request_id)) == ((ADA,),)

    def find() -> list[str]:
        completed = local(stack, "logs", "--request", request_id)
        results = [line.split(maxsplit=1) for line in completed.stdout.splitlines()]
        parts = [name for name, _ in results]
        assert all(request_id in text for name, text in results if name != "reaction_log")
        return parts if "SaveReactions" in parts else []

    parts = wait_until("the consumer has logged the request", find)
    assert parts == ["ReactionsApi", "SaveReactions", "reaction_log"]
    nothing = local(stack, "logs", "--request", "never-was-there")
    assert (nothing.returncode, nothing.stdout) == (1, "")


HOSTILE = ['{"event":"forged"}', "';DROP TABLE user;--", "x" * 5_000, "8613800138000", "a b c d"]


def test_a_hostile_request_id_is_ignored(
    stack: Stack, user: Callable[[int], Client], add: Callable[..., int]
) -> None:
    post = add()
    for request_id in HOSTILE:
        reply = user(ADA)("PUT", f"/posts/{post}/likes/me", headers={"X-Request-Id": request_id})
        assert reply.status == 200
        assert reply.headers["x-request-id"] not in ("", request_id)
    written = local(stack, "logs").stdout
    assert "request_served" in written
    assert not [request_id for request_id in HOSTILE if request_id[:200] in written]


def test_a_problem_has_the_request_id(anonymous: Client) -> None:
    for path in ("/posts/9/likes/me", "/nowhere"):
        reply = anonymous("PUT", path, headers={"X-Request-Id": "my-complaint-1"})
        assert reply.status in (401, 404)
        assert reply.headers["x-request-id"] == "my-complaint-1"


def test_an_operator_reads_lag_series_breakers_and_an_audit(
    stack: Stack, admin: Client, sign_in: Callable[..., str], base_url: str, add: Callable[..., int]
) -> None:
    post = add()
    ada = Client(base_url, sign_in(ADA))
    assert ada("PUT", f"/posts/{post}/likes/me").status == 200
    assert stack.invoke("SampleGauges", {})["gauges"] > 30
    series = admin("GET", "/ops/series?minutes=2").json["series"]
    sampled = {item["queue"] for item in series if item["name"] == "dead_letters"}
    lag = admin("GET", "/ops/lag").json
    assert {queue["name"] for queue in lag["queues"]} == sampled
    assert "sample_gauges" in {run["name"] for run in lag["schedules"]}
    assert {item["name"] for item in series} > {"backlog", "outbox_age_s", "drift"}

    def audit() -> dict[str, Any]:
        [likes, *_] = admin("GET", f"/ops/audit?target=post:{post}").json["items"]
        assert likes["drift"] == 0
        return dict(likes)

    assert audit()["total"] == 1
    wait_until("the like is stored", lambda: audit()["rows"] == 1, 30)
    wait_until("it is acknowledged", lambda: audit()["outbox"] == 0, 30)
    assert admin("GET", "/ops/breakers").json["complete"] is True
    assert admin("GET", "/ops/vouchers?state=ended").status == 200
    for path in ("audit", "breakers", "lag", "series", "vouchers", "reconciliations", "keys"):
        response = admin("GET", f"/ops/{path}")
        assert (response.status, response.headers["cache-control"]) == (200, "no-store"), path
        assert problem(ada("GET", f"/ops/{path}")) == "forbidden", path

"""Blocks, reports, hidden content and cache headers on the deployed stack."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from tests.e2e.client import Client, problem, wait_until

ADMIN, ADA, EVE, ME = 5_300_001, 5_300_002, 5_300_003, 5_300_004
POST = {"kind": "note", "title": "Noodles", "body": "Ask for the thick ones."}


def is_hidden_from(client: Client, path: str) -> bool:
    reply = client("GET", path)
    return reply.status == 410 and problem(reply) == "hidden"


def test_a_reported_post_is_hidden_from_others(
    admin: Client, user: Callable[[int], Client], anonymous: Client
) -> None:
    ada, eve = user(ADA), user(EVE)
    created = ada("POST", "/posts", POST)
    path = created.headers["location"]
    assert ada("PATCH", path, {"title": "Soba"}).json["title"] == "Soba"
    body = {"target": {"type": "post", "id": created.json["id"]}, "reason": "spam"}
    reported = eve("POST", "/reports", body, {"idempotency-key": "report-1"})
    assert reported.status == 201
    assert eve("GET", reported.headers["location"]).json == reported.json
    assert problem(eve("GET", "/ops/reports?limit=none")) == "forbidden"
    queue = {item["id"]: item for item in admin("GET", "/ops/reports").json["items"]}
    assert queue[reported.json["id"]]["content"]["title"] == "Soba"
    assert admin("PUT", f"/ops{path}/hidden").json == {"hidden": True}
    # Each process that read it knows within a second; the next request may meet another one.
    for client in (anonymous, eve):
        wait_until("hidden from others", partial(is_hidden_from, client, path), timeout_s=5)
    wait_until("hidden for Ada", lambda: ada("GET", path).json["hidden"], timeout_s=5)
    outcome = f"/ops/reports/{reported.json['id']}/outcome"
    assert admin("PUT", outcome, {"outcome": "upheld"}).json["outcome"] == "upheld"
    assert admin("DELETE", f"/ops{path}/hidden").json == {"hidden": False}
    wait_until("shown", lambda: anonymous("GET", path).status == 200, timeout_s=5)


def test_a_follow_that_races_a_block_does_not_stay(
    user: Callable[[int], Client], rows: Callable[..., Any]
) -> None:
    ada, me = user(ADA), user(ME)
    for _ in range(5):
        with ThreadPoolExecutor(3) as crowd:
            follows = [
                crowd.submit(ada, "PUT", f"/users/{ME}/followers/me"),
                crowd.submit(me, "PUT", f"/users/{ADA}/followers/me"),
            ]
            assert crowd.submit(me, "PUT", f"/users/{ADA}/blocks/me").result().status == 200
            assert {follow.result().status for follow in follows} <= {200, 403}
        for follower, followed in ((ada, ME), (me, ADA)):
            assert follower("GET", f"/users/{followed}").json["mine"]["following"] is False
            refused = follower("PUT", f"/users/{followed}/followers/me")
            assert problem(refused) == "blocked"
        assert me("DELETE", f"/users/{ADA}/blocks/me").json["changed"]
    wait_until(
        "the ends of the follows are stored",
        lambda: (
            rows(
                "SELECT COUNT(*) FROM reaction WHERE kind = 'follow' AND state = 1"
                " AND actor_id IN (%s, %s) AND target_id IN (%s, %s)",
                ADA, ME, ADA, ME,
            )
            == ((0,),)
        ),
    )  # fmt: skip


def test_a_public_response_is_not_sent_twice(
    anonymous: Client, user: Callable[[int], Client]
) -> None:
    first = anonymous("GET", "/shop-types")
    again = anonymous("GET", "/shop-types", headers={"if-none-match": first.headers["etag"]})
    assert (again.status, again.json) == (304, None)
    assert again.headers["etag"] == first.headers["etag"]
    private = user(ME)("GET", "/shop-types")
    assert private.headers["cache-control"] == "no-store"
    assert "etag" not in private.headers

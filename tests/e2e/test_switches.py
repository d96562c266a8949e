"""Operators throw each switch on the deployed stack, and the answers are as declared."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from local.stack.stack import Stack
from plaza.infra.runtime.switch_state import MAX_AGE_S
from tests.e2e.client import Client, Reply, problem, read_like_totals, wait_until
from tests.e2e.test_auth import ask_for_code, code_on, newcomer, use_code
from tests.e2e.test_flash_sale import offer

pytestmark = pytest.mark.outage
ADMIN, ADA = 5_400_001, 5_400_002
POST = {"kind": "note", "title": "Noodles", "body": "Ask for the thick ones."}
NORMAL = {
    "read_only": False,
    "readers_held": False,
    "comments_stopped": False,
    "posts_stopped": False,
    "notifications_stopped": False,
    "sign_ups_stopped": False,
    "stopped_sales": [],
    "cached_lists_only": False,
    "reads_factor": 1,
    "writes_factor": 1,
    "anonymous_factor": 1,
    "log_sample_rate": 1,
    "live_poll_s": 5,
}

Throw = Callable[..., AbstractContextManager[None]]

__all__ = ["newcomer", "offer"]  # fixtures


@pytest.fixture
def throw(admin: Client) -> Iterator[Throw]:
    """``with throw(read_only=True):`` or ``with throw(level="relieved"):``; normal afterwards."""

    def put(path: str, **requested: Any) -> None:
        version = admin("GET", "/ops/switches").json["version"]
        body = {"version": version, "reason": "A test of each switch.", **requested}
        reply = admin("PUT", f"/ops/switches{path}", body)
        assert (reply.status, reply.json["version"]) == (200, version + 1), reply.json

    @contextmanager
    def thrown(level: str | None = None, **switches: Any) -> Iterator[None]:
        if level:
            put("/level", level=level)
        else:
            put("", switches=NORMAL | switches)
        try:
            yield
        finally:
            put("", switches=NORMAL)

    yield thrown
    assert admin("GET", "/ops/switches").json["level"] == "normal"


@pytest.fixture(scope="module", autouse=True)
def _tests_of_other_files_find_all_normal() -> Iterator[None]:
    yield
    over_s = time.monotonic() + MAX_AGE_S
    wait_until("every process knows", lambda: time.monotonic() > over_s)


def is_off(reply: Reply) -> bool:
    if reply.status != 503:
        return False
    assert (problem(reply), reply.headers["retry-after"]) == ("switched-off", "30")
    return True


def wait_until_off(send: Callable[[], Reply]) -> Reply:
    """Wait until no process answers from before the switch, and return an answer."""
    wait_until("it is off", lambda: all(is_off(send()) for _ in range(3)), timeout_s=10)
    return send()


def wait_until_on(send: Callable[[], Reply]) -> Reply:
    wait_until("it is on", lambda: all(not is_off(send()) for _ in range(3)), timeout_s=10)
    return send()


def test_read_only_stops_writes_and_loses_nothing_that_was_accepted(
    throw: Throw,
    admin: Client,
    user: Callable[[int], Client],
    add: Callable[..., int],
    rows: Callable[..., Any],
) -> None:
    ada, post = user(ADA), add()
    path = f"/posts/{post}/likes/me"
    assert wait_until_on(lambda: ada("PUT", path)).status == 200
    with throw(read_only=True):
        refused = wait_until_off(lambda: ada("PUT", path))
        assert refused.json["detail"] == "Plaza is in read-only mode."
        for method, route in (("PUT", "/checkins/today"), ("POST", "/posts"), ("POST", "/shops")):
            wait_until_off(lambda: admin(method, route, POST))  # noqa: B023 - called here
        assert is_off(ada("DELETE", path))
        assert ada("GET", f"/posts/{post}").json["likes"] == 1
        assert admin("GET", "/ops/queues").status == 200
        wait_until("the like is stored", lambda: read_like_totals(rows, post) == (1, 1))
    assert wait_until_on(lambda: ada("DELETE", path)).json["likes"] == 0


def test_posts_and_comments_are_stopped_one_by_one(
    throw: Throw, user: Callable[[int], Client]
) -> None:
    ada = user(ADA)
    path = wait_until_on(lambda: ada("POST", "/posts", POST)).headers["location"]

    def post() -> Reply:
        return ada("POST", "/posts", POST)

    def comment() -> Reply:
        return ada("POST", f"{path}/comments", {"body": "Thin ones, please."})

    with throw(posts_stopped=True):
        wait_until_off(post)
        wait_until_off(lambda: ada("PATCH", path, {"title": "Soba"}))
        assert comment().status == 201
    with throw(comments_stopped=True):
        wait_until_off(comment)
        assert wait_until_on(post).status == 201
    assert wait_until_on(comment).status == 201


def test_sign_ups_stop(
    throw: Throw, stack: Stack, newcomer: Callable[[], tuple[str, Client]]
) -> None:
    phone, stranger = newcomer()
    with throw(sign_ups_stopped=True):
        sent = ask_for_code(stranger, phone)
        code = code_on(stack, phone)
        wait_until_off(lambda: use_code(stranger, sent, code))
    wait_until("the code works", lambda: use_code(stranger, sent, code).status == 201)


def test_orders_of_one_sale_stop(
    throw: Throw, user: Callable[[int], Client], offer: Callable[..., Reply]
) -> None:
    stopped, open_one = (offer(stock=1).json["id"] for _ in range(2))
    ada = user(ADA)
    with throw(stopped_sales=[stopped]):
        refused = wait_until_off(lambda: ada("POST", f"/vouchers/{stopped}/orders"))
        assert refused.json["detail"] == f"Orders of voucher {stopped} are switched off."
        assert ada("POST", f"/vouchers/{open_one}/orders").status == 202
    assert wait_until_on(lambda: ada("POST", f"/vouchers/{stopped}/orders")).status in (200, 202)


def test_rankings_are_served_as_last_built(
    throw: Throw, stack: Stack, anonymous: Client, user: Callable[[int], Client]
) -> None:
    ada = user(ADA)
    path = wait_until_on(lambda: ada("POST", "/posts", POST)).headers["location"]
    ada("PUT", f"{path}/likes/me")
    stack.invoke("RefreshRankings", {})
    with throw(cached_lists_only=True):
        wait_until(
            "the schedule is stopped", lambda: stack.invoke("RefreshRankings", {})["ranked"] == 0
        )
        assert anonymous("GET", "/posts/ranking").status == 200
        assert anonymous("GET", "/posts/ranking?window=day").status == 200


def test_levels_answer_as_declared(
    throw: Throw, admin: Client, anonymous: Client, user: Callable[[int], Client]
) -> None:
    ada = user(ADA)
    path = wait_until_on(lambda: ada("POST", "/posts", POST)).headers["location"]
    requests: dict[str, Callable[[], Reply]] = {
        "read": lambda: anonymous("GET", path),
        "post": lambda: ada("POST", "/posts", POST),
        "comment": lambda: ada("POST", f"{path}/comments", {"body": "Thin ones, please."}),
        "like": lambda: ada("PUT", f"{path}/likes/me"),
        "operate": lambda: admin("GET", "/ops/switches"),
    }
    stopped: dict[str, set[str]] = {
        "normal": set(),
        "relieved": set(),
        "essential": {"post", "comment"},
        "read_only": {"post", "comment", "like"},
    }
    for level, off in stopped.items():
        with throw(level=level):
            assert admin("GET", "/ops/switches").json["level"] == level
            for name, send in requests.items():
                wait = wait_until_off if name in off else wait_until_on
                assert wait(send).status in (200, 201, 503), (level, name)


def test_operators_do_not_overwrite_each_other_and_see_who_changed_what(admin: Client) -> None:
    before = admin("GET", "/ops/switches").json
    body = {"version": before["version"], "reason": "Nothing changes.", "switches": NORMAL}
    assert admin("PUT", "/ops/switches", body).status == 200
    late = body | {"reason": "I am late.", "switches": NORMAL | {"read_only": True}}
    refused = admin("PUT", "/ops/switches", late)
    assert (refused.status, problem(refused)) == (409, "switches-changed")
    [newest] = admin("GET", "/ops/switches/changes?limit=1").json["items"]
    assert (newest["changed_by"], newest["reason"]) == (str(ADMIN), "Nothing changes.")
    assert newest["before"] == newest["after"] == before["switches"]

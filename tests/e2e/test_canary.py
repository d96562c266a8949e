"""The canary passes on a healthy stack, and leaves nothing behind."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from typing import Any

import pytest

from cli.paths import ROOT
from local.stack.stack import Stack
from tests.e2e.client import Client, wait_until

USER = 9_300_101
CANARY = runpy.run_path(str(ROOT / "deploy" / "canary" / "app.py"))


@pytest.fixture
def post_id(base_url: str, sign_in: Callable[..., str]) -> str:
    """A post of the canary's user, hidden as RenewCanary hides it."""
    text = {"title": "Canary", "body": "Read by a monitor.", "images": [], "kind": "note"}
    created = str(Client(base_url, sign_in(USER))("POST", "/posts", text).json["id"])
    admin = Client(base_url, sign_in(9_300_102, role="admin"))
    assert admin("PUT", f"/ops/posts/{created}/hidden").status == 200
    return created


def test_it_likes_reads_and_unlikes_a_hidden_post(
    base_url: str, sign_in: Callable[..., str], post_id: str, anonymous: Client, rows: Any
) -> None:
    for _ in range(3):
        CANARY["check"](base_url, sign_in(USER), post_id)
    wait_until(  # a process may serve it for a second, because it was created visible here
        "it is hidden from others",
        lambda: anonymous("GET", f"/posts/{post_id}").status == 410,
        10,
    )
    counter = "SELECT total FROM counter WHERE target_id = %s AND kind = 'like' AND version > 0"
    wait_until("its unlike is stored", lambda: rows(counter, post_id) == ((0,),), 60)


def test_a_session_that_ended_fails_with_its_status(base_url: str, post_id: str) -> None:
    with pytest.raises(CANARY["CanaryError"], match="401") as failure:
        CANARY["check"](base_url, "x" * 43, post_id)
    assert failure.value.status in CANARY["RENEWABLE"]


@pytest.mark.quiet  # late, when each schedule of a minute has run
def test_schedules_of_the_stack_report_that_they_ran(stack: Stack) -> None:
    log = stack.directory / "logs" / "functions" / "PublishUnsent.log"

    def ran() -> bool:
        lines = log.read_text().splitlines() if log.exists() else []
        events = [json.loads(line) for line in lines if line.startswith("{")]
        return any(e.get("event") == "schedule_ran" and e["ran"] == 1 for e in events)

    wait_until("PublishUnsent ran", ran, 90)

"""Live numbers in two browsers: one reacts, the other shows it; a hidden page sends nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count

import pytest
from playwright.sync_api import Page, Request, expect

from tests.e2e.browser import needs_browser
from tests.e2e.client import Client, wait_until
from tests.e2e.conftest import OpenApp
from tests.support.node import needs_npm_packages

# Alone, because a number may be no older than nine seconds.
pytestmark = [needs_npm_packages, needs_browser, pytest.mark.quiet]
_ids = count(7_600_001)
LIKE, COLLECT = re.compile("^Like "), re.compile("^Collect ")
AGE_MS = 9_000  # of a number on an active screen: live_poll_s + 4 s
HIDE = """
Object.defineProperty(document, 'hidden', {value: true, configurable: true});
document.dispatchEvent(new Event('visibilitychange'));
"""
LOOK_AGAIN = "document.dispatchEvent(new Event('visibilitychange'))"


def polls_of(page: Page) -> list[str]:
    """Return the list that gets the URL of each poll from now on."""
    polls: list[str] = []

    def hear(request: Request) -> None:
        if "/totals?" in request.url:
            polls.append(request.url)

    page.on("request", hear)
    return polls


def test_what_one_browser_does_another_one_shows_within_nine_seconds(
    open_app: OpenApp, user: Callable[[int], Client]
) -> None:
    writer_id = next(_ids)
    writer = user(writer_id)
    post = {"kind": "note", "title": "Followed", "body": "Seen from two windows."}
    post_id = writer("POST", "/posts", post).json["id"]
    path = f"/posts/{post_id}"
    wait_until("the totals have tokens", lambda: writer("GET", path).json["likes_at"] is not None)
    watching = open_app(path).page  # signed out
    profile = open_app(f"/users/{writer_id}").page
    liking = open_app(path, next(_ids)).page
    expect(watching.get_by_role("button", name=LIKE)).to_have_text(re.compile("0"))
    # Opened long ago on a slow machine, they found nothing new twice, and ask rarely.
    for page in (watching, profile):
        page.evaluate(LOOK_AGAIN)
    liking.get_by_role("button", name=LIKE).click()
    liking.get_by_role("button", name=COLLECT).click()
    reader = user(next(_ids))
    assert reader("PUT", f"/users/{writer_id}/followers/me").status == 200
    for name in (LIKE, COLLECT):
        expect(watching.get_by_role("button", name=name)).to_have_text(
            re.compile("1"), timeout=AGE_MS
        )
    expect(profile.get_by_text(re.compile("1 follower"))).to_be_visible(timeout=AGE_MS)
    assert reader("PUT", f"{path}/likes/me").json["likes"] == 2
    for page in (watching, liking):
        expect(page.get_by_role("button", name=LIKE)).to_have_text(re.compile("2"), timeout=AGE_MS)
    polls = polls_of(watching)
    watching.evaluate(HIDE)
    seen = len(polls)
    with liking.expect_request(lambda request: "/totals?" in request.url, timeout=AGE_MS * 4):
        pass
    with liking.expect_request(lambda request: "/totals?" in request.url, timeout=AGE_MS * 4):
        pass
    assert len(polls) - seen <= 1, "one was on its way"

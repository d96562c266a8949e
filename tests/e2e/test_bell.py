"""Notifications in the app: three browsers, two of them of one user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from tests.e2e.browser import find_wide, needs_browser
from tests.e2e.client import Client, wait_until
from tests.e2e.conftest import OpenApp

pytestmark = needs_browser
AUTHOR, FAN, OTHER = 5_810_001, 5_810_002, 5_810_003
POST = {"kind": "note", "title": "The thick ones", "body": "Ask for them."}


def badge(page: Page) -> Any:
    return page.locator(".bar .badge [aria-hidden]")


def wake(page: Page) -> None:
    """Let a page read its bell at once, as when it is shown again."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def test_two_devices_show_the_same_badge_and_a_mark_on_one_clears_the_other(
    open_app: OpenApp, user: Callable[[int], Client], rows: Callable[..., Any]
) -> None:
    """Given a fan who likes and comments in a third browser."""
    author, other = user(AUTHOR), user(OTHER)
    post_id = author("POST", "/posts", POST).json["id"]
    phone, laptop = open_app("/", AUTHOR), open_app("/ranking", AUTHOR)
    fan = open_app(f"/posts/{post_id}", FAN)
    for device in (phone, laptop):
        expect(device.page.get_by_role("link", name="Alerts")).to_be_visible()
        expect(badge(device.page)).to_have_count(0)

    fan.page.get_by_role("button", name="Like").first.click()
    wait_until("it rang", lambda: author("GET", "/users/me/bell").json["unread"] == 1)
    for device in (phone, laptop):
        wake(device.page)
        expect(badge(device.page)).to_have_text("1")
    other("POST", f"/posts/{post_id}/comments", {"body": "The thin ones."})
    wait_until("it rang", lambda: author("GET", "/users/me/bell").json["unread"] == 2)

    phone.open("/notifications")
    items = phone.page.locator(".notification")
    expect(items).to_have_count(2)
    expect(phone.page.get_by_text("liked your post “The thick ones”")).to_be_visible()
    assert find_wide(phone.page) == []
    phone.check_accessibility()
    expect(badge(phone.page)).to_have_text("2")

    # What rings after the list stays new on both devices.
    other("PUT", f"/posts/{post_id}/likes/me")
    wait_until(
        "it rang",
        lambda: (
            rows("SELECT fresh FROM bell_group WHERE user_id = %s AND kind = 'like'", AUTHOR)
            == ((2,),)
        ),
    )
    phone.page.get_by_role("button", name="Mark all as read").click()
    expect(badge(phone.page)).to_have_text("1")
    wake(laptop.page)
    expect(badge(laptop.page)).to_have_text("1")
    expect(phone.page.locator(".notification.unread")).to_have_count(1)
    phone.page.get_by_role("button", name="Mark all as read").click()
    for device in (phone, laptop):
        wake(device.page)
        expect(badge(device.page)).to_have_count(0)
    assert author("GET", "/users/me/bell").json["unread"] == 0

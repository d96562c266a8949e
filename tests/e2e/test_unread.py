"""Notifications in the app: three browsers, two of them of one user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
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
    """Let a page read its unread counter at once, as when it is shown again."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


@pytest.mark.deep
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
    wait_until(
        "it notified", lambda: author("GET", "/users/me/notifications/unread").json["unread"] == 1
    )
    for device in (phone, laptop):
        wake(device.page)
        expect(badge(device.page)).to_have_text("1")
    other("POST", f"/posts/{post_id}/comments", {"body": "The thin ones."})
    wait_until(
        "it notified", lambda: author("GET", "/users/me/notifications/unread").json["unread"] == 2
    )

    phone.open("/notifications")
    items = phone.page.locator(".notification")
    expect(items).to_have_count(2)
    expect(phone.page.get_by_text("liked your post “The thick ones”")).to_be_visible()
    assert find_wide(phone.page) == []
    phone.check_accessibility()
    expect(badge(phone.page)).to_have_text("2")

    # What notifies after the list stays new on both devices.
    other("PUT", f"/posts/{post_id}/likes/me")
    wait_until(
        "it notified",
        lambda: (
            rows(
                "SELECT fresh FROM notification_group WHERE user_id = %s AND kind = 'like'", AUTHOR
            )
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
    assert author("GET", "/users/me/notifications/unread").json["unread"] == 0


@pytest.mark.parametrize(
    ("author_id", "locale", "like", "comment", "follow", "new"),
    [
        (
            5_810_011,
            "en-GB",
            "Lin and Ada liked your post “The thick ones”",
            "1 comment on your post “The thick ones”, the latest by Lin",
            "Ada follows you",
            "2 new",
        ),
        (
            5_810_012,
            "zh-CN",
            "Lin、Ada赞了你的帖子“The thick ones”",
            "你的帖子“The thick ones”有 1 条评论，最新来自Lin",
            "Ada关注了你",
            "2 条新",
        ),
        (
            5_810_013,
            "ru-RU",
            "Нравится ваша запись «The thick ones»: Lin, Ada",
            "Комментарии к записи «The thick ones»: 1 (Lin)",
            "Ваши подписчики: Ada",
            "новых: 2",
        ),
    ],
)
def test_the_list_says_what_notified_in_the_language_of_the_reader(
    author_id: int,
    locale: str,
    like: str,
    comment: str,
    follow: str,
    new: str,
    open_app: OpenApp,
    user: Callable[[int], Client],
) -> None:
    author, ada, lin = user(author_id), user(FAN), user(OTHER)
    ada("PATCH", "/users/me", {"nickname": "Ada"})
    lin("PATCH", "/users/me", {"nickname": "Lin"})
    post_id = author("POST", "/posts", POST).json["id"]
    ada("PUT", f"/posts/{post_id}/likes/me")
    lin("PUT", f"/posts/{post_id}/likes/me")
    lin("POST", f"/posts/{post_id}/comments", {"body": "The thin ones."})
    ada("PUT", f"/users/{author_id}/followers/me")

    def fresh() -> int:
        items = author("GET", "/users/me/notifications").json["items"]
        return sum(item["fresh"] for item in items)

    wait_until("all notified", lambda: fresh() == 4)
    page = open_app("/notifications", author_id, locale=locale).page
    sentences = page.locator(".notification .what")
    expect(sentences).to_have_count(3)
    assert {*sentences.all_text_contents()} == {like, comment, follow}
    expect(page.locator(".notification", has_text=like).locator(".fresh")).to_have_text(new)

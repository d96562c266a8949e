"""Sessions of the web app: sign-in over the page, what it repeats, drafts, tabs, and the end."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from json import dumps
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from local.load.town import make_voucher
from local.stack.servers import connect_redis
from local.stack.stack import Stack
from tests.e2e.browser import AppPage, confirm, describe_session, needs_browser
from tests.e2e.client import Client, wait_until
from tests.e2e.conftest import OpenApp, Tokens
from tests.support.node import needs_npm_packages

pytestmark = [needs_npm_packages, needs_browser]
_ids = count(6_860_001)
_phones = count(20)
LIKE = re.compile("^Like ")
PROFILE = re.compile("^Profile")


@pytest.fixture
def author(user: Callable[[int], Client]) -> Client:
    return user(6_869_999)


def write_post(client: Client) -> str:
    body = {"kind": "note", "title": "Harbour", "body": "Seen today."}
    return str(client("POST", "/posts", body).json["id"])


def has_likes(client: Client, post_id: str, likes: int) -> bool:
    return bool(client("GET", f"/posts/{post_id}").json["likes"] == likes)


def sign_in_over(page: Page) -> None:
    """Sign a new user in with the dialog that is open."""
    dialog = page.get_by_role("dialog", name="Sign in")
    expect(dialog.get_by_label("Phone number")).to_be_focused()
    dialog.get_by_label("Phone number").fill(f"+1 415 555 01{next(_phones)}")
    page.keyboard.press("Enter")
    expect(dialog.get_by_label("Code", exact=True)).to_be_focused()
    dialog.get_by_role("button", name="Use it").click()
    expect(dialog).to_have_count(0)


def sign_in_at(form: Page | Locator, phone: str) -> None:
    """Sign in with the form of a page or of a dialog."""
    form.get_by_label("Phone number").fill(phone)
    form.get_by_role("button", name="Send code").click()
    form.get_by_role("button", name="Use it").click()


def end_session(app: AppPage, base_url: str) -> None:
    """End the session of a page as a sign-out elsewhere does."""
    token = app.page.evaluate("JSON.parse(localStorage['plaza-session']).token")
    assert Client(base_url, token)("DELETE", "/auth/sessions/current").status == 204


def count_history(page: Page) -> int:
    return int(page.evaluate("history.length"))


def test_a_like_without_a_session_is_done_after_the_sign_in(
    open_app: OpenApp, author: Client
) -> None:
    post_id = write_post(author)
    app = open_app(f"/posts/{post_id}")
    page = app.page
    like = page.get_by_role("button", name=LIKE)
    expect(like).to_have_text("Like0")
    entries = count_history(page)
    like.click()
    expect(page.get_by_role("dialog", name="Sign in")).to_be_visible()
    app.check_accessibility()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(like).to_be_focused()
    expect(like).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("Enter")
    sign_in_over(page)
    expect(like).to_have_attribute("aria-pressed", "true")
    expect(like).to_have_text("Like1")
    expect(like).to_be_focused()
    assert count_history(page) == entries
    wait_until("it is counted", partial(has_likes, author, post_id, 1))


def test_the_dialog_keeps_the_focus(open_app: OpenApp, author: Client) -> None:
    page = open_app(f"/posts/{write_post(author)}").page
    page.get_by_role("button", name=LIKE).click()
    dialog = page.get_by_role("dialog", name="Sign in")
    expect(dialog.get_by_label("Phone number")).to_be_focused()
    for key in ["Tab"] * 4 + ["Shift+Tab"] * 4:
        page.keyboard.press(key)
        assert page.evaluate(
            "document.activeElement === document.body"
            " || document.querySelector('dialog[open]').contains(document.activeElement)"
        )


def test_buying_joining_and_reporting_continue_after_the_sign_in(
    open_app: OpenApp, author: Client, base_url: str, sign_in: Callable[..., str]
) -> None:
    admin = Client(base_url, sign_in(6_869_998, role="admin"))
    shop_id = admin("POST", "/shops", {"name": "Linden Food"}).json["id"]
    admin("POST", "/vouchers", make_voucher(shop_id, time.time(), stock=1, open_s=1800))
    first = open_app(f"/shops/{shop_id}")
    sale = first.page.get_by_role("region", name="Dinner for two")
    sale.get_by_role("button", name="Buy one").click()
    sign_in_over(first.page)
    expect(sale.get_by_role("status")).to_contain_text("It is yours. Order ")
    second = open_app(f"/shops/{shop_id}")
    sale = second.page.get_by_role("region", name="Dinner for two")
    sale.get_by_role("button", name="Join the waitlist").click()
    sign_in_over(second.page)
    expect(sale.get_by_role("status")).to_have_text("You are number 1 in the waitlist.")
    reader = open_app(f"/posts/{write_post(author)}")
    reader.page.get_by_role("button", name="Report").click()
    sign_in_over(reader.page)
    expect(reader.page.get_by_role("dialog", name="Report this post")).to_be_visible()


def test_the_sign_in_page_leads_back_to_where_it_was_opened(
    open_app: OpenApp, author: Client
) -> None:
    post_id = write_post(author)
    app = open_app("/ranking")
    page = app.page
    expect(page.get_by_role("heading", name="Ranking")).to_be_visible()
    page.evaluate(f"location.hash = '/posts/{post_id}'")
    expect(page.get_by_role("heading", name="Harbour")).to_be_visible()
    page.get_by_role("link", name="Sign in").click()
    sign_in_at(page, f"+1 415 555 01{next(_phones)}")
    expect(page.get_by_role("heading", name="Harbour")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Harbour")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Ranking")).to_be_visible()


def fill_post(page: Page) -> Locator:
    page.get_by_label("Blog").check()
    page.get_by_label("Title").fill("Night train")
    text = page.get_by_role("textbox", name="Text")
    text.fill("Off to the sea.")
    return text


def test_a_draft_outlives_other_pages_and_a_reload_until_it_is_published(open_app: OpenApp) -> None:
    app = open_app("/write", next(_ids))
    page = app.page
    text = fill_post(page)
    page.get_by_role("link", name="Ranking").click()
    expect(page.get_by_role("heading", name="Ranking")).to_be_visible()
    page.go_back()
    expect(text).to_have_value("Off to the sea.")
    page.reload()
    expect(text).to_have_value("Off to the sea.")
    expect(page.get_by_label("Title")).to_have_value("Night train")
    expect(page.get_by_label("Blog")).to_be_checked()
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("heading", name="Night train")).to_be_visible()
    page.get_by_label("Your comment").fill("More tomorrow.")
    page.reload()
    expect(page.get_by_label("Your comment")).to_have_value("More tomorrow.")
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.get_by_role("article").filter(has_text="More tomorrow.")).to_be_visible()
    expect(page.get_by_label("Your comment")).to_have_value("")
    app.open("/write")
    expect(text).to_have_value("")


def test_a_session_that_ends_while_a_post_is_written_loses_no_text(
    open_app: OpenApp, base_url: str
) -> None:
    app = open_app("/write", next(_ids), refused=(401,))
    page = app.page
    text = fill_post(page)
    end_session(app, base_url)
    page.get_by_role("button", name="Publish").click()
    dialog = page.get_by_role("dialog", name="Sign in")
    expect(dialog).to_contain_text("Your session has ended.")
    app.check_accessibility()
    page.keyboard.press("Escape")
    expect(text).to_have_value("Off to the sea.")
    expect(page.get_by_role("button", name="Publish")).to_be_focused()
    notices = page.get_by_role("complementary", name="Notices")
    expect(notices).to_contain_text("Your session has ended.")
    app.check_accessibility()
    page.reload()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_what_was_begun_continues_when_the_same_user_is_back(
    open_app: OpenApp, base_url: str, author: Client, tokens: Tokens
) -> None:
    post_id, user_id = write_post(author), next(_ids)
    app = open_app(f"/posts/{post_id}", user_id, refused=(401,))
    page = app.page
    dialog = page.get_by_role("dialog", name="Sign in")
    other_tab = page.context.new_page()
    other_tab.goto(page.url)

    def come_back() -> None:
        expect(dialog).to_contain_text("Your session has ended.")
        session = describe_session(tokens.open(user_id, "user"), user_id, "ada")
        other_tab.evaluate("text => localStorage.setItem('plaza-session', text)", dumps(session))
        expect(dialog).to_have_count(0)

    comment = page.get_by_label("Your comment")
    comment.fill("I was there!")
    end_session(app, base_url)
    page.get_by_role("button", name="Comment", exact=True).click()
    come_back()
    expect(page.get_by_role("article").filter(has_text="I was there!")).to_be_visible()
    expect(comment).to_have_value("")
    like = page.get_by_role("button", name=LIKE).first
    for likes in (1, 0):
        end_session(app, base_url)
        like.click()
        come_back()
        expect(like).to_have_attribute("aria-pressed", "true" if likes else "false")
        wait_until("it is counted", partial(has_likes, author, post_id, likes))


def test_an_ended_session_says_so_and_asks_to_sign_in_again(
    open_app: OpenApp, base_url: str
) -> None:
    app = open_app("/ranking", next(_ids), refused=(401,))
    page = app.page
    expect(page.get_by_role("link", name=PROFILE)).to_be_visible()
    end_session(app, base_url)
    page.reload()
    notices = page.get_by_role("complementary", name="Notices")
    expect(notices).to_contain_text("Your session has ended.")
    expect(page.get_by_role("link", name="Sign in")).to_be_visible()
    expect(page.get_by_role("article").or_(page.locator(".empty")).first).to_be_visible()
    notices.get_by_role("button", name="Sign in again").click()
    sign_in_over(page)
    expect(page.get_by_text("Your session has ended.")).to_have_count(0)
    expect(page.get_by_role("link", name=PROFILE)).to_be_visible()


def test_a_session_that_the_api_extends_has_no_end_here(open_app: OpenApp) -> None:
    page = open_app("/ranking", next(_ids)).page
    expect(page.get_by_role("link", name=PROFILE)).to_be_visible()
    page.evaluate(
        """() => {
          const session = JSON.parse(localStorage["plaza-session"]);
          localStorage["plaza-session"] = JSON.stringify({ ...session, expiresAt: 1 });
        }"""
    )
    page.reload()
    expect(page.get_by_role("link", name=PROFILE)).to_be_visible()


def test_tabs_sign_in_and_out_together_and_a_draft_goes_with_its_user(open_app: OpenApp) -> None:
    app = open_app("/ranking", next(_ids))
    first = app.page
    second = first.context.new_page()
    second.goto(first.url)
    expect(second.get_by_role("link", name=PROFILE)).to_be_visible()
    second.evaluate("location.hash = '/write'")
    text = fill_post(second)
    first.evaluate("location.hash = '/settings'")
    first.get_by_role("button", name="Sign out").click()
    expect(first.get_by_role("heading", name="Every like counts once.")).to_be_visible()
    expect(second.get_by_role("heading", name="Sign in")).to_be_visible()
    first.get_by_role("link", name="Sign in", exact=True).click()
    sign_in_at(first, f"+1 415 555 01{next(_phones)}")
    expect(text).to_have_value("")  # another user
    expect(second.get_by_role("link", name=PROFILE)).to_be_visible()


def allow_another_code(stack: Stack) -> None:
    """Let a phone request a second code within a minute."""
    with connect_redis(stack.redis_url, cluster=stack.redis_cluster) as redis:
        redis.delete(*redis.scan_iter("*codes-to-phone-at*"))


def test_an_old_session_signs_in_again_before_the_account_closes_and_a_sign_in_opens_it(
    open_app: OpenApp, rows: Callable[..., Any], stack: Stack
) -> None:
    app = open_app("/sign-in", refused=(401, 403))
    page, phone = app.page, f"+1 415 555 01{next(_phones)}"
    sign_in_at(page, phone)
    wait_until("a session is kept", lambda: page.evaluate("localStorage['plaza-session']"))
    user_id = page.evaluate("JSON.parse(localStorage['plaza-session']).user.id")
    app.open("/settings")
    page.get_by_role("button", name="Delete my account").wait_for()
    rows("UPDATE session SET signed_in_at = '2026-01-01' WHERE user_id = %s", user_id)
    with connect_redis(stack.redis_url, cluster=stack.redis_cluster) as redis:
        redis.delete(*redis.scan_iter("*session:*"))  # else it is read from MySQL in a minute
    button = page.get_by_role("button", name="Delete my account")
    confirm(button, "Delete your account?", word="delete")
    dialog = page.get_by_role("dialog", name="Sign in")
    expect(dialog).to_contain_text("For this you sign in again")
    app.check_accessibility()
    allow_another_code(stack)
    sign_in_at(dialog, phone)
    expect(page.locator(".toast")).to_contain_text("Your account is closed")
    app.open("/sign-in")
    allow_another_code(stack)
    sign_in_at(page, phone)
    expect(page.locator(".toast")).to_contain_text("Your account is open again")
    assert page.evaluate("JSON.parse(localStorage['plaza-session']).user.id") == user_id

"""Lists of the web app stay as their reader left them, and say what is new."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
from playwright.sync_api import Page, Request, Route, expect

from tests.e2e.browser import confirm, has_any, needs_browser
from tests.e2e.client import Client, wait_until
from tests.e2e.conftest import OpenApp
from tests.support.node import needs_npm_packages

pytestmark = [needs_npm_packages, needs_browser]
_ids = count(6_810_001)
POSTS = 45
MAX_OFF_PX = 100


@pytest.fixture
def author(user: Callable[[int], Client]) -> tuple[int, Client]:
    author_id = next(_ids)
    client = user(author_id)
    client("PATCH", "/users/me", {"nickname": f"Author {author_id}"})
    return author_id, client


def write(client: Client, title: str) -> str:
    reply = client("POST", "/posts", {"kind": "note", "title": title, "body": "Seen today."})
    return str(reply.json["id"])


def wait_for_news(page: Page, text: str) -> None:
    """Show the tab again, until its page says what is new."""

    def is_shown() -> bool:
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        return page.get_by_role("button", name=text, exact=True).is_visible()

    wait_until(f"the page says {text}", is_shown)


def test_back_restores_the_items_and_the_scroll_position(
    open_app: OpenApp, author: tuple[int, Client]
) -> None:
    author_id, client = author
    for number in range(POSTS):
        write(client, f"Walk {number}")
    page = open_app(f"/users/{author_id}", next(_ids)).page
    posts = page.locator("article.post")
    page.get_by_role("button", name="Show more").click()
    expect(posts).to_have_count(40)
    link = page.get_by_role("link", name="Walk 10", exact=True)
    link.scroll_into_view_if_needed()
    before = page.evaluate("scrollY")
    assert before > 2000
    link.click()
    expect(page.get_by_role("heading", name="Walk 10")).to_be_visible()
    assert page.evaluate("scrollY") == 0
    page.go_back()
    expect(posts).to_have_count(40)
    expect(link).to_be_in_viewport()
    assert abs(page.evaluate("scrollY") - before) < MAX_OFF_PX
    page.go_forward()
    expect(page.get_by_role("heading", name="Walk 10")).to_be_visible()
    assert page.evaluate("scrollY") == 0
    # A visit by a link is another entry of the history: it reads the list again, from its top.
    page.get_by_role("link", name=f"Author {author_id}").first.click()
    expect(posts).to_have_count(20)
    assert page.evaluate("scrollY") == 0


def test_the_feed_says_how_many_posts_are_new_and_a_click_shows_them(
    open_app: OpenApp, author: tuple[int, Client], user: Callable[[int], Client]
) -> None:
    author_id, client = author
    reader_id = next(_ids)
    user(reader_id)("PUT", f"/users/{author_id}/followers/me")
    write(client, "The first")
    feed = "/feed"
    wait_until("the post is in the feed", lambda: user(reader_id)("GET", feed).json["items"])
    app = open_app("/", reader_id)
    page = app.page
    expect(page.get_by_role("link", name="The first")).to_be_visible()
    for title in ("The second", "The third", "The fourth"):
        write(client, title)
    wait_for_news(page, "3 new posts")
    app.check_accessibility()
    expect(page.get_by_role("link", name="The fourth")).to_have_count(0)
    page.get_by_role("button", name="3 new posts").click()
    expect(page.get_by_role("link", name="The fourth")).to_be_visible()
    expect(page.get_by_role("button", name="3 new posts")).to_have_count(0)
    expect(page.get_by_role("heading", name="Feed")).to_be_focused()
    write(client, "The fifth")
    wait_for_news(page, "1 new post")
    page.get_by_role("link", name="Feed").click()  # where the reader is already
    expect(page.get_by_role("link", name="The fifth")).to_be_visible()


def test_an_empty_page_that_more_follow_is_read_on(
    open_app: OpenApp, author: tuple[int, Client], user: Callable[[int], Client]
) -> None:
    author_id, client = author
    reader_id = next(_ids)
    reader = user(reader_id)
    reader("PUT", f"/users/{author_id}/followers/me")
    write(client, "The first")
    write(client, "The second")
    wait_until("both are in the feed", lambda: len(reader("GET", "/feed").json["items"]) == 2)
    empty = {"items": [], "next": reader("GET", "/feed?limit=1").json["next"]}
    page = open_app("/shops", reader_id).page

    def answer(sent: Route) -> None:
        if "cursor=" in sent.request.url:
            sent.continue_()
        else:
            sent.fulfill(json=empty, headers={"access-control-allow-origin": "*"})

    page.route("**/feed?*", answer)
    page.route("**/feed", answer)
    page.get_by_role("link", name="Feed").click()
    expect(page.get_by_role("link", name="The first")).to_be_visible()
    expect(page.get_by_role("link", name="The second")).to_have_count(0)


def test_a_feed_is_not_checked_while_it_is_hidden(open_app: OpenApp) -> None:
    page = open_app("/shops", next(_ids)).page
    page.clock.install()
    checks: list[str] = []

    def record(sent: Request) -> None:
        if "/feed?limit=10" in sent.url:
            checks.append(sent.url)

    page.on("request", record)
    page.get_by_role("link", name="Feed").click()
    expect(page.get_by_text("Your feed is empty")).to_be_visible()
    page.clock.run_for(21_000)
    wait_until("the feed is checked", lambda: has_any(page, checks))
    before = len(checks)
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true})")
    page.clock.run_for(120_000)
    assert len(checks) <= before + 1


def test_ones_own_post_is_in_the_feed_and_in_the_profile_at_once(
    open_app: OpenApp, author: tuple[int, Client]
) -> None:
    author_id, client = author
    write(client, "An old one")
    page = open_app(f"/users/{author_id}", author_id).page
    expect(page.get_by_role("link", name="An old one")).to_be_visible()
    page.get_by_role("link", name="Write").click()
    page.get_by_label("Title").fill("Just now")
    page.get_by_role("textbox", name="Text").fill("A word.")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("heading", name="Just now")).to_be_visible()
    lists = "**/users/*/posts*"
    page.route(lists, lambda route: None)  # its answer never arrives
    page.get_by_role("link", name="Profile").click()
    expect(page.get_by_role("link", name="Just now")).to_be_visible()
    page.unroute(lists)
    page.get_by_role("link", name="Feed").click()
    expect(page.get_by_role("link", name="Just now")).to_be_visible()
    page.get_by_role("link", name="Just now").click()
    confirm(page.get_by_role("button", name="Delete"), "Delete this post?")
    expect(page.get_by_text("Your feed is empty")).to_be_visible()


def test_a_block_is_known_after_a_reload(open_app: OpenApp, author: tuple[int, Client]) -> None:
    author_id, _ = author
    app = open_app(f"/users/{author_id}", next(_ids))
    page = app.page
    confirm(page.get_by_role("button", name="Block"), "Block this user?")
    unblock = page.get_by_role("button", name="Unblock")
    expect(unblock).to_be_focused()
    page.reload()
    expect(unblock).to_be_visible()
    expect(page.get_by_role("button", name="Follow")).to_have_count(0)
    app.check_accessibility()
    unblock.click()
    expect(page.get_by_role("button", name=f"Follow Author {author_id}")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="Block")).to_be_visible()


def test_the_focus_stays_near_what_was_deleted(
    open_app: OpenApp, author: tuple[int, Client]
) -> None:
    author_id, client = author
    post = write(client, "The old town")
    for number in range(3):
        client("POST", f"/posts/{post}/comments", {"body": f"Remark {number}"})
    page = open_app(f"/posts/{post}", author_id).page
    remarks = page.locator("li", has_text="Remark")
    expect(remarks).to_have_count(3)
    for left, focused in ((2, "Remark 1"), (1, "Remark 0")):
        delete(page)
        expect(remarks).to_have_count(left)
        expect(remarks.filter(has_text=focused)).to_be_focused()
    delete(page)
    expect(page.get_by_text("No comments yet")).to_be_visible()
    expect(page.get_by_role("heading", name="The old town")).to_be_focused()


def delete(page: Page) -> None:
    """Delete the first remark by keyboard, in the dialog that keeps it by default."""
    page.locator(".remark").first.get_by_role("button", name="Delete").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Keep it as it is")).to_be_focused()
    expect(dialog.get_by_role("button").last).to_be_enabled()
    page.keyboard.press("Tab")
    expect(dialog.get_by_role("button").last).to_be_focused()
    page.keyboard.press("Enter")

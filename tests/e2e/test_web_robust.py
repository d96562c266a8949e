"""Pages of the web app hold: broken links, bugs, hostile texts, no network, forced colors, slow
scripts."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count

import pytest
from playwright.sync_api import Page, Route, expect

from local.load.town import make_voucher
from tests.e2e.browser import AppPage, find_wide, needs_browser
from tests.e2e.client import Client, wait_until
from tests.e2e.conftest import OpenApp
from tests.support.depth import choose
from tests.support.node import needs_npm_packages

pytestmark = [needs_npm_packages, needs_browser]
_ids = count(6_820_001)
ADMIN = 6_829_999
LONG_WORD = "W" * 200


@pytest.fixture
def admin(base_url: str, sign_in: Callable[..., str]) -> Client:
    return Client(base_url, sign_in(ADMIN, role="admin"))


@pytest.mark.parametrize("path", ["/users/%", "/posts/%E0%A4%A"])
def test_a_broken_link_leads_to_a_page_that_says_so(open_app: OpenApp, path: str) -> None:
    page = open_app(path).page
    expect(page.get_by_text("There is no such page.")).to_be_visible()
    page.get_by_role("link", name="To the start").click()
    expect(page.get_by_role("heading", name="Every like counts once.")).to_be_visible()


def test_a_page_with_a_bug_is_replaced_by_an_error_and_the_others_work(open_app: OpenApp) -> None:
    app = open_app("/shops")
    page = app.page
    page.route("**/posts/ranking*", lambda route: route.fulfill(json={"items": [{}], "next": None}))
    page.get_by_role("link", name="Ranking").click()
    expect(page.get_by_role("heading", name="Something went wrong")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("This page has an error")
    app.check_accessibility()
    page.get_by_role("link", name="Shops").click()
    expect(page.get_by_role("heading", name="Shops nearby")).to_be_visible()
    assert {error.split(":")[0] for error in app.errors} == {"TypeError"}  # for who looks for it
    app.errors.clear()


def test_a_bug_is_not_called_a_lost_connection(open_app: OpenApp) -> None:
    page = open_app("/shops").page
    page.get_by_role("heading", name="Shops nearby").wait_for()
    page.evaluate("Number.parseFloat = undefined")
    page.evaluate("location.hash = '/ranking'")
    expect(page.get_by_role("alert")).to_contain_text("This page has an error")
    expect(page.get_by_role("alert")).not_to_contain_text("No connection")


@pytest.mark.sampled
def test_no_text_makes_a_page_scroll_sideways(
    open_app: OpenApp, admin: Client, user: Callable[[int], Client]
) -> None:
    author_id = next(_ids)
    author = user(author_id)
    author("PATCH", "/users/me", {"nickname": LONG_WORD[:40]})
    body = {"kind": "note", "title": LONG_WORD, "body": LONG_WORD * 2}
    post = author("POST", "/posts", body).json["id"]
    author("POST", f"/posts/{post}/comments", {"body": LONG_WORD})
    for kind in ("likes", "collects"):
        author("PUT", f"/posts/{post}/{kind}/me")
    fan_id = next(_ids)
    fan = user(fan_id)
    fan("PATCH", "/users/me", {"nickname": LONG_WORD[:40]})
    fan("PUT", f"/users/{author_id}/followers/me")
    author("PUT", f"/users/{fan_id}/followers/me")
    blocked = next(_ids)
    user(blocked)("PATCH", "/users/me", {"nickname": LONG_WORD[:40]})
    author("PUT", f"/users/{blocked}/blocks/me")
    shop = {
        "name": LONG_WORD,
        "place": {"x": 30.0, "y": 20.0},
        "area": LONG_WORD[:64],
        "address": LONG_WORD,
    }
    shop_id = admin("POST", "/shops", shop | {"open_hours": LONG_WORD}).json["id"]
    author("POST", f"/shops/{shop_id}/reviews", {"score": 4, "body": LONG_WORD})
    sale = make_voucher(shop_id, time.time(), stock=2, open_s=1800) | {"title": LONG_WORD[:100]}
    voucher = admin("POST", "/vouchers", sale).json["id"]
    author("POST", f"/vouchers/{voucher}/orders")
    likers = f"/posts/{post}/likers"
    wait_until("the like is listed", lambda: author("GET", likers).json["items"])
    feed = "/feed"
    wait_until("the post is in the feed", lambda: fan("GET", feed).json["items"])
    app = open_app("/nowhere", author_id, refused=(404,))
    paths = [
        *("/", "/ranking?window=all", f"/posts/{post}", "/write", "/settings", "/blocks"),
        *(f"/users/{author_id}?tab={tab}" for tab in ("posts", "likes", "collects", "orders")),
        *(f"/users/{author_id}/{people}" for people in ("followers", "following")),
        *(f"/users/{fan_id}", "/shops?x=30&y=20&radius=20000", f"/shops/{shop_id}", "/check-ins"),
        *("/sign-in", "/nowhere", "/posts/1"),
    ]
    check_widths(app, choose([*paths[2:4], paths[-1]], paths))
    app.open(f"/posts/{post}")
    app.page.get_by_role("button", name="Likers").click()
    app.page.locator(".people").wait_for()
    assert find_wide(app.page) == []
    app.page.get_by_role("button", name="Edit").click()
    app.page.get_by_label("Title").wait_for()
    assert find_wide(app.page) == []
    of_fan = ["/", f"/users/{author_id}", f"/posts/{post}"]
    check_widths(open_app("/", fan_id), choose(of_fan[:1], of_fan))
    check_widths(open_app("/"), [f"/shops/{shop_id}", *choose([], ["/"])])


def check_widths(app: AppPage, paths: list[str]) -> None:
    """Fail if a page scrolls sideways at one of the widths, or with text twice as large."""
    wide: list[str] = []
    for path in paths:
        app.open(path)
        app.page.locator("main h1").first.wait_for()
        app.page.locator(".skeleton").first.wait_for(state="detached")
        wide += [f"{path}: {what}" for what in find_wide(app.page)]
    assert not wide, "\n".join(wide)


def test_a_lost_network_is_said_and_what_failed_is_read_again_when_it_is_back(
    open_app: OpenApp, user: Callable[[int], Client]
) -> None:
    author_id = next(_ids)
    user(author_id)("PATCH", "/users/me", {"nickname": "Grace"})
    app = open_app("/shops", next(_ids))
    page = app.page
    page.get_by_role("heading", name="Shops nearby").wait_for()
    banner = page.get_by_role("status").filter(has_text="You are offline.")
    expect(banner).to_have_count(0)
    page.context.set_offline(True)
    expect(banner).to_be_visible()
    page.evaluate(f"location.hash = '/users/{author_id}'")
    expect(page.get_by_role("alert")).to_contain_text("No connection")
    app.check_accessibility()
    page.context.set_offline(False)
    expect(page.get_by_role("heading", name="Grace")).to_be_visible()  # without a click
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(banner).to_have_count(0)
    assert [error for error in app.errors if "ERR_INTERNET_DISCONNECTED" not in error] == []
    app.errors.clear()


def test_forced_colors_show_which_tab_is_chosen(
    open_app: OpenApp, user: Callable[[int], Client]
) -> None:
    page = open_app("/ranking?window=day").page
    page.emulate_media(forced_colors="active")
    assert count_underlined(page, "nav.tabs a", "[aria-current]") == (1, True)
    author = user(next(_ids))
    post = author("POST", "/posts", {"kind": "note", "title": "The lake", "body": "Blue."}).json
    page.evaluate(f"location.hash = '/posts/{post['id']}'")
    page.get_by_role("button", name="Comments").wait_for()
    assert count_underlined(page, ".tabs button", '[aria-pressed="true"]') == (1, True)


def count_underlined(page: Page, tabs: str, chosen: str) -> tuple[int, bool]:
    """Return how many tabs have a line that can be seen, and whether the chosen one has it."""
    page.locator(tabs).first.wait_for()
    lines = page.locator(tabs).evaluate_all(
        """(tabs, chosen) => {
          const probe = document.body.appendChild(document.createElement("i"));
          probe.style.color = "Canvas";
          const canvas = getComputedStyle(probe).color;
          probe.remove();
          const isSeen = (tab) => getComputedStyle(tab).borderBottomColor !== canvas;
          return tabs.map((tab) => [isSeen(tab), tab.matches(chosen)]);
        }""",
        chosen,
    )
    seen = [is_chosen for is_seen, is_chosen in lines if is_seen]
    return len(seen), seen == [True]


def test_the_html_shows_the_frame_before_the_script_has_arrived(open_app: OpenApp) -> None:
    page = open_app("/nowhere").page
    page.get_by_text("There is no such page.").wait_for()
    held: list[Route] = []
    page.route("**/app.js", lambda route: held.append(route))
    page.reload(wait_until="commit")
    expect(page.locator(".skeleton")).to_be_visible()
    expect(page.get_by_role("navigation", name="Main")).to_be_visible()
    assert len(held) == 1
    held.pop().continue_()
    expect(page.get_by_text("There is no such page.")).to_be_visible()
    expect(page.locator(".skeleton")).to_have_count(0)
    expect(page.get_by_role("navigation", name="Main")).to_have_count(1)

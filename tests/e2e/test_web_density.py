"""What fits on a screen, what is found, and what users can do with their own data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect

from tests.e2e.browser import DRAWN, PHONE, confirm, find_wide, needs_browser
from tests.e2e.client import Client, wait_until
from tests.e2e.conftest import OpenApp
from tests.support.depth import choose
from tests.support.node import needs_npm_packages

pytestmark = [needs_npm_packages, needs_browser]
_ids = count(6_950_001)
MAX_SHIFT = 0.05
SHIFTS = """window.shifts = [];
new PerformanceObserver((list) => {
  for (const { value, sources } of list.getEntries())
    window.shifts.push([value, sources.map(({ node }) => `${node?.nodeName}.${node?.className}`)]);
}).observe({ type: "layout-shift", buffered: true });"""
"""Records what moved without its user, and how much: Google's cumulative layout shift."""
WHOLE = """() => [...document.querySelectorAll("article.post")].filter((post) => {
  const { top, bottom } = post.getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight;
}).length"""


def test_a_laptop_shows_three_whole_posts_of_any_length(
    open_app: OpenApp, user: Callable[[int], Client]
) -> None:
    """Given posts of three lines, each second one with a picture."""
    author = next(_ids)
    client = user(author)
    for number in range(6):
        images = ["https://pictures.plaza.example/harbour.svg"] if number % 2 else []
        body = {"kind": "note", "title": f"Post {number}", "body": "word " * 50, "images": images}
        client("POST", "/posts", body)
    app = open_app(f"/users/{author}", next(_ids))
    page = app.page
    page.set_viewport_size({"width": 1280, "height": 800})
    expect(page.locator("article.post")).to_have_count(6)
    top = page.locator("article.post").first.evaluate("p => p.getBoundingClientRect().top")
    page.evaluate("top => scrollTo(0, top - 16)", top)
    assert page.evaluate(WHOLE) >= 3
    assert find_wide(page) == []


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("site", "paths"),
    [
        ("", ("/", "/ranking?window=all", "/shops", "/settings", "/notifications")),
        ("/console", ("/", "/queues", "/keys", "/switches", "/account", "/break-it")),
    ],
)
def test_nothing_moves_while_a_page_is_read(
    open_app: OpenApp, user: Callable[[int], Client], site: str, paths: tuple[str, ...]
) -> None:
    """Given a post with a picture, and answers of which the last arrives first."""
    author = next(_ids)
    images = ["https://pictures.plaza.example/harbour.svg"]
    post = {"kind": "note", "title": "A", "body": "B", "images": images}
    user(author)("POST", "/posts", post)
    role = "admin" if site else "user"
    app = open_app("/", author, role=role, site=site)
    page = app.page
    page.add_init_script(SHIFTS)
    held: list[Route] = []
    page.route("**/ops/**", lambda route: held.append(route))

    def is_read() -> bool:
        if held:
            held.pop().continue_()
        page.evaluate(DRAWN)
        return (
            not held and page.locator("h1").count() > 0 and page.locator(".skeleton").count() == 0
        )

    for width in (PHONE["width"], 1280):
        page.set_viewport_size({"width": width, "height": PHONE["height"]})
        for path in choose(paths[:2], paths):
            held.clear()
            app.open(path)
            wait_until("the page is read", is_read)
            shifts = page.evaluate("shifts")
            assert sum(value for value, _ in shifts) < MAX_SHIFT, (path, width, shifts)


def test_a_shop_is_searched_by_the_beginning_of_its_name(
    open_app: OpenApp, base_url: str, sign_in: Callable[..., str]
) -> None:
    name = f"Quince {next(_ids)}"
    admin = Client(base_url, sign_in(next(_ids), role="admin"))
    shop_id = admin("POST", "/shops", {"name": name, "avg_price_cents": 1250}).json["id"]
    app = open_app("/search", refused=(404,))
    page = app.page
    page.get_by_label("Name of a shop").fill(name[:-2].lower())
    expect(page.get_by_role("link", name=name)).to_have_attribute("href", f"#/shops/{shop_id}")
    expect(page.locator(".shop small").last).to_have_text("about €12.50")
    assert find_wide(page) == []
    app.check_accessibility()
    page.get_by_label("Name of a shop").fill("Zzzzzz")
    expect(page.get_by_text("No shop begins with this")).to_be_visible()
    page.get_by_label("Name of a shop").fill("4711")
    page.get_by_role("button", name="Search").click()
    expect(page).to_have_url(re.compile("#/users/4711$"))
    expect(page.get_by_role("alert")).to_be_visible()


def test_users_download_their_data_and_erase_their_account(
    open_app: OpenApp, user: Callable[[int], Client], tmp_path: Path
) -> None:
    user_id = next(_ids)
    client = user(user_id)
    for number in range(3):
        client("POST", "/posts", {"kind": "note", "title": f"Post {number}", "body": "Mine."})
    app = open_app("/settings", user_id, refused=(401,))
    page = app.page
    with page.expect_download() as download:
        page.get_by_role("button", name="Download my data").click()
    file = tmp_path / "export.json"
    download.value.save_as(file)
    exported = json.loads(file.read_text())
    assert sorted(row["title"] for row in exported["posts"]) == ["Post 0", "Post 1", "Post 2"]
    expect(page.get_by_role("status").filter(has_text="Your data is downloaded")).to_be_visible()
    app.check_accessibility()
    confirm(
        page.get_by_role("button", name="Delete my account"), "Delete your account?", word="delete"
    )
    expect(page.get_by_role("link", name="Sign in", exact=True)).to_be_visible()
    assert client("GET", "/users/me").status == 401


def test_an_operator_filters_copies_and_follows_links(
    open_app: OpenApp, user: Callable[[int], Client]
) -> None:
    author, reporter = next(_ids), next(_ids)
    posts = [
        user(author)("POST", "/posts", {"kind": "note", "title": title, "body": "B"}).json["id"]
        for title in ("Pears", "Plums")
    ]
    for post_id in posts:
        body = {"target": {"type": "post", "id": post_id}, "reason": "spam"}
        user(reporter)("POST", "/reports", body)
    app = open_app(
        "/moderation",
        next(_ids),
        role="admin",
        site="/console",
        permissions=["clipboard-read", "clipboard-write"],
    )
    page = app.page
    page.get_by_label("Filter reports").fill("plums")
    expect(page.get_by_role("article")).to_have_count(1)
    expect(page.get_by_role("link", name=f"post {posts[1]}")).to_have_attribute(
        "href", f"/#/posts/{posts[1]}"
    )
    app.open("/queues")
    page.get_by_label("Filter Queues").fill("fanouts")
    expect(page.locator("tbody tr")).to_have_count(1)
    app.check_accessibility()

"""An hour of a user and of an operator, as one journey with a picture of each step at two sizes.

The pictures are in ``--basetemp``/hour, or in the directory that PLAZA_PICTURES names.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from cli.paths import ROOT
from local.load.town import make_voucher
from local.stack.stack import Stack
from tests.e2e.browser import AppPage, find_wide, needs_browser, take_pictures
from tests.e2e.client import Client, wait_until
from tests.e2e.conftest import OpenApp
from tests.support.node import needs_npm_packages

pytestmark = [needs_npm_packages, needs_browser, pytest.mark.outage, pytest.mark.deep]
OPERATOR = 6_839_999
_ids = count(6_830_001)
_phones = count(int(time.time()) % 10_000)


class Album:
    """Takes a picture of each step at both sizes; no page may scroll sideways."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._numbers = count(1)

    def take(self, page: Page, name: str) -> None:
        take_pictures(page, self.directory, f"{next(self._numbers):02}-{name}")
        assert find_wide(page) == [], name


@pytest.fixture
def album(tmp_path_factory: pytest.TempPathFactory) -> Album:
    named = os.environ.get("PLAZA_PICTURES", "")
    directory = Path(named) if named else tmp_path_factory.mktemp("hour", numbered=False)
    directory.mkdir(parents=True, exist_ok=True)
    return Album(directory)


@pytest.fixture
def set_part(stack: Stack) -> Iterator[Callable[[str, str], None]]:
    """``set_part("stop", "mysql")`` runs the operator's command; what was stopped is started."""
    stopped: set[str] = set()

    def run(action: str, part: str) -> None:
        command = [sys.executable, "-m", "local", "--dir", str(stack.directory), action, part]
        completed = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
        )
        assert completed.returncode == 0, completed.stdout + completed.stderr
        if action == "stop":
            stopped.add(part)
        else:
            stopped.discard(part)

    yield run
    for part in tuple(stopped):
        run("start", part)


def enter(page: Page) -> None:
    """Sign in a new user in the dialog that is open."""
    dialog = page.get_by_role("dialog", name="Sign in")
    dialog.get_by_label("Phone number").fill(f"+1 415 555 {next(_phones) % 10_000:04}")
    dialog.get_by_role("button", name="Send code").click()
    dialog.get_by_role("button", name="Use it").click()
    expect(dialog).to_have_count(0)


def test_a_user_and_an_operator_have_a_good_hour(
    open_app: OpenApp,
    user: Callable[[int], Client],
    base_url: str,
    sign_in: Callable[..., str],
    album: Album,
    set_part: Callable[[str, str], None],
) -> None:
    writer_id = next(_ids)
    writer = user(writer_id)
    writer("PATCH", "/users/me", {"nickname": "Grace"})
    posts = [write(writer, f"Harbour {number}") for number in range(30)]
    admin = Client(base_url, sign_in(OPERATOR, role="admin"))

    app = open_app(f"/posts/{posts[0]}")
    page = app.page
    like_before_signing_in(page, album, writer, posts[0])
    follow_and_write(page, album, writer_id)
    read_and_return(page, album, writer, writer_id)
    buy_and_wait(app, album, admin, user)
    followers = f"/users/{writer_id}/followers"
    # A message that met an outage of the test before comes again after its visibility timeout.
    wait_until("the follow is listed", lambda: writer("GET", followers).json["items"], 300)
    lose_the_network(app, album, writer_id)
    operate(open_app, album, set_part, user, posts[0])
    app.refused.clear()  # reads while MySQL was stopped


def write(client: Client, title: str) -> str:
    body = {"kind": "note", "title": title, "body": "Boats come in at dawn."}
    return str(client("POST", "/posts", body).json["id"])


def like_before_signing_in(page: Page, album: Album, writer: Client, post: str) -> None:
    """The like of a visitor is sent after the sign-in, on the same page."""
    expect(page.get_by_role("heading", name="Harbour 0")).to_be_visible()
    album.take(page, "visitor")
    page.get_by_role("button", name=re.compile("^Like ")).click()
    page.get_by_role("dialog", name="Sign in").wait_for()
    album.take(page, "sign-in")
    enter(page)
    like = page.get_by_role("button", name=re.compile("^Like "))
    expect(like).to_have_attribute("aria-pressed", "true")
    read = f"/posts/{post}"
    wait_until("the like is stored", lambda: writer("GET", read).json["likes"] == 1)
    album.take(page, "liked")


def follow_and_write(page: Page, album: Album, writer_id: int) -> None:
    """A follow fills the feed; one's own post is in it at once."""
    page.get_by_role("link", name="Grace").first.click()
    page.get_by_role("button", name="Follow Grace").wait_for()
    assert page.evaluate("scrollY") == 0
    page.get_by_role("button", name="Follow Grace").click()
    expect(page.get_by_role("button", name="Following Grace")).to_be_visible()
    page.evaluate("scrollTo(0, 0)")  # a click that is repeated scrolls
    album.take(page, "profile")
    page.get_by_role("link", name="Write").click()
    page.get_by_label("Title").fill("My first walk")
    page.get_by_role("textbox", name="Text").fill("To the old harbour, and back by night.")
    album.take(page, "write")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("heading", name="My first walk")).to_be_visible()
    page.get_by_role("link", name="Feed").click()
    expect(page.get_by_role("link", name="My first walk")).to_be_visible()

    def has_posts() -> bool:
        page.get_by_role("link", name="Feed").click()  # reads it again
        return page.get_by_role("link", name="Harbour 29").is_visible()

    wait_until("the feed has the posts of Grace", has_posts)
    album.take(page, "feed")


def read_and_return(page: Page, album: Album, writer: Client, writer_id: int) -> None:
    """Back leads to where the reader was, and new posts are counted, not pushed in."""
    page.get_by_role("button", name="Show more").click()
    link = page.get_by_role("link", name="Harbour 3", exact=True)
    link.scroll_into_view_if_needed()
    before = page.evaluate("scrollY")
    link.click()
    expect(page.get_by_role("heading", name="Harbour 3")).to_be_visible()
    for number in range(3):
        write(writer, f"Evening {number}")
    page.go_back()
    expect(link).to_be_in_viewport()
    assert abs(page.evaluate("scrollY") - before) < 100
    news = page.get_by_role("button", name="3 new posts")

    def is_told() -> bool:
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        return news.is_visible()

    wait_until("the feed says what is new", is_told)
    album.take(page, "news")
    news.click()
    expect(page.get_by_role("link", name="Evening 2")).to_be_in_viewport()


def buy_and_wait(app: AppPage, album: Album, admin: Client, user: Callable[[int], Client]) -> None:
    """One unit is bought; of another sale, which is sold out, a unit comes by the waitlist, whose
    offer is on all pages of the user who comes back."""
    page = app.page
    shop = admin("POST", "/shops", {"name": "Linden Food", "area": "Mitte"}).json["id"]
    sales = [
        admin(
            "POST", "/vouchers", make_voucher(shop, time.time(), stock=units) | {"title": title}
        ).json["id"]
        for title, units in (("Dinner for two", 5), ("Breakfast", 1))
    ]
    first = user(next(_ids))
    order = first("POST", f"/vouchers/{sales[1]}/orders").json["order_id"]
    path = f"/orders/{order}"
    wait_until("the last unit is sold", lambda: first("GET", path).json["status"] == "success")
    page.evaluate(f"location.hash = '/shops/{shop}'")
    dinner = page.get_by_role("region", name="Dinner for two")
    dinner.get_by_role("button", name="Buy one").click()
    expect(dinner).to_contain_text("It is yours.")
    breakfast = page.get_by_role("region", name="Breakfast")
    breakfast.get_by_role("button", name="Join the waitlist").click()
    expect(breakfast).to_contain_text("You are number 1 in the waitlist.")
    album.take(page, "sale")
    page.goto("about:blank")  # the user leaves
    assert first("DELETE", path).status == 200
    app.open("/")
    offer = page.get_by_role("complementary", name="Notices")
    expect(offer).to_contain_text("Breakfast is set aside for you", timeout=60_000)
    album.take(page, "offer")
    offer.get_by_role("link", name="See the offer").click()
    breakfast.get_by_role("button", name="Accept the offer").click()
    expect(breakfast).to_contain_text("It is yours.")
    album.take(page, "accepted")


def lose_the_network(app: AppPage, album: Album, writer_id: int) -> None:
    """Without a network the page says so, and goes on by itself when it is back."""
    page = app.page
    page.context.set_offline(True)
    expect(page.get_by_text("You are offline.")).to_be_visible()
    page.evaluate(f"location.hash = '/users/{writer_id}/followers'")
    expect(page.get_by_role("alert").first).to_contain_text("No connection")
    album.take(page, "offline")
    page.context.set_offline(False)
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.locator(".people li").first).to_be_visible()
    expect(page.get_by_text("You are offline.")).to_have_count(0)
    app.errors.clear()  # the browser's own notes of failed requests


def operate(
    open_app: OpenApp,
    album: Album,
    set_part: Callable[[str, str], None],
    user: Callable[[int], Client],
    post: str,
) -> None:
    """MySQL stops under a like: the operator sees it, follows the runbook, and nothing is lost."""
    fan = user(next(_ids))
    read = f"/posts/{post}"
    assert fan("GET", read).json["likes"] == 1
    console = open_app("/", OPERATOR, (503,), role="admin", site="/console")
    page = console.page
    verdict = page.get_by_role("region", name="Live audit")
    expect(verdict).to_contain_text("No drift")
    album.take(page, "console")
    set_part("stop", "mysql")
    assert fan("PUT", f"{read}/likes/me").status == 200
    mysql = page.locator(".stat", has_text="MySQL").first
    expect(mysql).to_have_class("card stat bad", timeout=60_000)
    expect(verdict).to_have_class("verdict unknown", timeout=60_000)
    album.take(page, "outage")
    with page.context.expect_page() as opened:
        mysql.get_by_role("link", name=re.compile("^Runbook")).click()
    expect(opened.value.get_by_text("request_served").first).to_be_visible()
    opened.value.close()
    set_part("start", "mysql")
    expect(mysql).to_have_class("card stat good", timeout=120_000)
    expect(verdict).to_have_class("verdict good", timeout=120_000)
    page.get_by_role("button", name="Sweep now").click()
    expect(page.get_by_role("status").filter(has_text="sent again")).to_be_visible()
    album.take(page, "recovered")
    page.get_by_role("link", name="Break it").click()
    page.get_by_role("button", name="Audit everything").click()
    full = page.get_by_role("region", name="Full audit")
    expect(full.get_by_text("Clean")).to_be_visible(timeout=300_000)
    album.take(page, "audited")
    assert fan("GET", read).json["likes"] == 2
    console.errors.clear()

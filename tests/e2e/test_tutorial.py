"""The page of docs/guides/feed-page.md, in a browser, as it is printed."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from urllib.parse import quote, urlencode
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Dialog, Locator, Page, Route, expect

from cli.paths import ROOT
from local.stack.stack import Stack
from tests.e2e.browser import has_any, needs_browser, open_context
from tests.e2e.client import Client, wait_until
from tests.support.http_servers import Quiet, serving
from tests.support.node import CLIENT, MODULES, needs_npm_packages, run_node

pytestmark = [needs_npm_packages, needs_browser]
GUIDE = ROOT / "docs" / "guides" / "feed-page.md"
NOTE = {"kind": "note", "title": "Harbour 6880001", "body": "Seen today."}
PHONE = "+14155550197"


def read_page() -> str:
    """Return the page that the guide prints."""
    [page] = re.findall(r"^```html\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    return str(page)


class QuietHandler(Quiet, SimpleHTTPRequestHandler):
    """Serves files."""


@pytest.fixture(scope="module")
def page_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the page beside the client, built and served as the guide says."""
    folder = tmp_path_factory.mktemp("feed")
    compiler = MODULES / "typescript" / "bin" / "tsc"
    project = CLIENT / "tsconfig.build.json"
    run_node(compiler, "--project", project, "--outDir", folder / "plaza-client")
    (folder / "index.html").write_text(read_page())
    handler = functools.partial(QuietHandler, directory=str(folder))
    with serving(handler) as url:
        yield f"{url}/"


@pytest.fixture
def page(browser: Browser, stack: Stack, page_url: str) -> Iterator[Page]:
    """The page, opened with the URL of the API; its console has to stay empty."""
    context = open_context(browser, page_url)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: answer(dialog, stack))
    page.goto(f"{page_url}?{urlencode({'api': stack.base_url})}")
    yield page
    context.close()
    assert errors == []


def answer(dialog: Dialog, stack: Stack) -> None:
    """Give the code that the stack sent."""
    assert dialog.type == "prompt"
    with urlopen(f"{stack.web_url}/local/texts?phone={quote(PHONE)}") as response:
        dialog.accept(json.load(response)["code"])


def test_the_page_has_sixty_lines() -> None:
    assert len(read_page().splitlines()) <= 60
    assert "60 lines" in GUIDE.read_text().splitlines()[0]


@pytest.mark.deep
def test_a_user_signs_in_follows_writes_and_likes(
    page: Page, stack: Stack, user: Callable[[int], Client]
) -> None:
    author, reader = user(6_880_001), user(6_880_002)
    written = author("POST", "/posts", NOTE).json
    path = f"/posts/{written['id']}/likes/me"
    assert reader("PUT", path).json["likes"] == 1
    wait_until(
        "the like is stored", lambda: author("GET", f"/posts/{written['id']}/likers").json["items"]
    )
    stack.invoke("RefreshRankings", {})

    page.get_by_role("button", name="Popular").click()
    popular = page.get_by_role("article").filter(has_text=NOTE["title"])
    read_until_shown(page, popular)
    popular.get_by_role("button", name="♡ 1").click()
    expect(page.get_by_role("alert")).not_to_be_empty()  # without a session
    expect(popular.get_by_role("button", name="♡ 1")).to_have_count(1)

    page.get_by_label("Phone").fill(PHONE)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("button", name="Publish")).to_be_visible()
    page.get_by_role("button", name="Popular").click()
    read_until_shown(page, popular)
    popular.get_by_role("button", name="Follow").click()
    expect(popular.get_by_role("button", name="Follow")).to_have_count(0)
    wait_until("the post is in the feed", functools.partial(shows_feed, page, NOTE["title"]))

    post = page.get_by_role("article").filter(has_text=NOTE["title"])
    post.get_by_role("button", name="♡ 1").click()
    expect(post.get_by_role("button", name="♥ 2")).to_have_count(1)
    wait_until(
        "the like is counted",
        lambda: author("GET", f"/posts/{written['id']}").json["likes"] == 2,
    )
    reader("DELETE", path)
    expect(post.get_by_role("button", name="♥ 1")).to_have_count(1)  # live

    page.get_by_label("Title").fill("<b>Mine</b>")
    page.get_by_label("Text").fill("First post")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("heading", name="<b>Mine</b>")).to_have_count(1)
    page.reload()
    expect(page.get_by_role("article").filter(has_text=NOTE["title"])).to_have_count(1)


def test_a_list_that_is_opened_replaces_one_that_is_still_read(
    page: Page, stack: Stack, user: Callable[[int], Client]
) -> None:
    """Given two reads of the popular posts, of which the later one is answered first."""
    author, reader = user(6_880_003), user(6_880_004)
    written = author("POST", "/posts", {**NOTE, "title": "Lighthouse"}).json
    assert reader("PUT", f"/posts/{written['id']}/likes/me").json["likes"] == 1
    wait_until(
        "the like is stored",
        lambda: author("GET", f"/posts/{written['id']}/likers").json["items"],
    )
    stack.invoke("RefreshRankings", {})
    held: list[Route] = []
    page.route("**/posts/ranking**", lambda route: held.append(route))
    page.reload()
    wait_until("the page reads", functools.partial(has_any, page, held))
    page.get_by_role("button", name="Popular").click()
    wait_until("the page reads again", lambda: has_any(page, held[1:]))
    with page.expect_response("**/posts/ranking**"):
        held[1].continue_()
    expect(page.get_by_role("article").first).to_be_visible()
    shown = page.get_by_role("article").count()
    with page.expect_response("**/posts/ranking**"):
        held[0].continue_()
    page.wait_for_timeout(50)
    assert page.get_by_role("article").count() == shown


def read_until_shown(page: Page, post: Locator) -> None:
    """Press *More* until the page shows a post, or the list has ended."""
    more = page.get_by_role("button", name="More")
    expect(page.get_by_role("article").first).to_be_visible()
    while post.count() == 0 and more.is_visible():
        more.click()
        page.wait_for_timeout(50)
    expect(post).to_have_count(1)


def shows_feed(page: Page, title: str) -> bool:
    """Read the feed again, and return whether it has a post."""
    with page.expect_response(re.compile("/feed")):
        page.get_by_role("button", name="My feed").click()
    page.wait_for_timeout(50)
    return page.get_by_role("article").filter(has_text=title).count() == 1


def test_the_guide_makes_the_folder_that_the_page_is_served_from() -> None:
    text = GUIDE.read_text()
    assert "cp -r clients/typescript/dist .local/feed/plaza-client" in text
    assert "--directory .local/feed" in text
    assert Path(CLIENT / "tsconfig.build.json").exists()

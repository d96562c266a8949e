"""The languages of the web pages: catalogues, the form of numbers and times, and mirrored pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count

import pytest
from playwright.sync_api import Route, expect

from tests.e2e.browser import find_wide, needs_browser
from tests.e2e.client import Client
from tests.e2e.conftest import OpenApp
from tests.support.depth import choose
from tests.support.node import needs_npm_packages

pytestmark = [needs_npm_packages, needs_browser]
_ids = count(6_890_001)
PAGES = (
    "/",
    "/ranking",
    "/settings",
    "/blocks",
    "/check-ins",
    "/notifications",
    "/write",
    "/search",
)
CONSOLE = {
    "/": "th[scope=row]",
    "/queues": "th[scope=row]",
    "/reconciliation": "tbody",
    "/keys": "tbody",
    "/sales": "h2",
    "/switches": "tbody",
    "/moderation": "article",
    "/erasures": "",
    "/account": "",
    "/break-it": "",
}
"""Pages, with what users, other tests and the code have named in them."""
NAMES = re.compile(
    r"Plaza|Redis|MySQL|SQS|Binlog|Berlin|[A-Z][a-z]+/[A-Z]\w+|https|UTC|English"
    r"|user \d+|Writer \d+"
)
"""What is written in Latin letters in every language."""
SEEN = """(others) => {
  // The label of a sale, .run, has its title.
  const texts = [document.title];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const ofUsers =
    ".list.people, article, .post, .user, noscript, option, datalist, script, style, code,"
    + " .runbook" + others;
  for (let node; (node = walker.nextNode()); )
    if (!node.parentElement.closest(ofUsers)) texts.push(node.data);
  for (const name of ["aria-label", "title", "placeholder", "alt"])
    for (const element of document.querySelectorAll(`[${name}]`))
      if (!element.matches(".run") && !element.closest(ofUsers))
        texts.push(element.getAttribute(name));
  return texts;
}"""


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("locale", "language", "title"), [("zh-CN", "zh", "动态"), ("ru-RU", "ru", "Лента")]
)
def test_every_page_is_in_the_language_of_the_device(
    open_app: OpenApp, locale: str, language: str, title: str
) -> None:
    app = open_app("/", next(_ids), locale=locale)
    page = app.page
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    expect(page.locator("html")).to_have_attribute("lang", language)
    expect(page.locator("html")).to_have_attribute("dir", "ltr")
    for path in choose(PAGES[:2], PAGES):
        app.open(path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator(".skeleton, .problem")).to_have_count(0)
        texts = [NAMES.sub("", text) for text in page.evaluate(SEEN, "")]
        assert [text for text in texts if re.search("[A-Za-z]{2,}", text)] == [], path
        assert find_wide(page) == [], path
    app.check_accessibility()


@pytest.mark.sampled
@pytest.mark.parametrize(("locale", "title"), [("zh-CN", "概览"), ("ru-RU", "Обзор")])
def test_every_page_of_the_console_is_in_the_language_of_the_device(
    open_app: OpenApp, locale: str, title: str
) -> None:
    app = open_app("/", next(_ids), role="admin", site="/console", locale=locale)
    page = app.page
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    expect(page.locator("html")).to_have_attribute("lang", locale[:2])
    for path, named in choose([*CONSOLE.items()][:2], [*CONSOLE.items()]):
        app.open(path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator(".skeleton, .problem")).to_have_count(0)
        texts = page.evaluate(SEEN, named and f", {named}")
        texts = [NAMES.sub("", text) for text in texts]
        assert [text for text in texts if re.search("[A-Za-z]{2,}", text)] == [], path
        assert find_wide(page) == [], path


def test_an_operator_chooses_another_language(open_app: OpenApp) -> None:
    app = open_app("/account", next(_ids), role="admin", site="/console")
    page = app.page
    page.get_by_label("Language").select_option("ru")
    expect(page.get_by_role("heading", level=1)).to_have_text("Учётная запись")
    expect(page).to_have_title("Учётная запись · Plaza, консоль")
    app.check_accessibility()


def test_a_user_chooses_another_language_and_keeps_it(open_app: OpenApp) -> None:
    app = open_app("/settings", next(_ids), refused=(400,))
    page = app.page
    page.get_by_label("Language").select_option("ru")
    expect(page.get_by_role("heading", level=1)).to_have_text("Настройки")
    app.open("/write")
    page.get_by_role("button", name="Опубликовать").click()
    expect(page.locator(".wrong").first).to_have_text("Заполните это поле.")
    app.open("/settings")
    page.get_by_label("Язык").select_option("")
    expect(page.get_by_role("heading", level=1)).to_have_text("Settings")


def test_a_catalogue_that_cannot_be_loaded_leaves_the_page_in_english(open_app: OpenApp) -> None:
    app = open_app("/ranking", locale="en-GB")
    page = app.page

    def lose(route: Route) -> None:
        route.fulfill(status=200, content_type="text/javascript", body="throw new Error('lost')")

    page.route("**/ru.js", lose)
    page.evaluate("localStorage.setItem('plaza-language', 'ru')")
    app.open("/ranking")
    expect(page.get_by_role("heading", level=1)).to_have_text("Ranking")
    expect(page.locator("html")).to_have_attribute("lang", "en")


def test_numbers_prices_and_times_have_the_form_of_the_language(
    open_app: OpenApp, user: Callable[[int], Client]
) -> None:
    """Given a post with 1,234,567 likes, as the API sends it."""
    author = next(_ids)
    post = user(author)("POST", "/posts", {"kind": "note", "title": "A", "body": "B"}).json
    for locale, shown, ago in (
        ("en-GB", "1,234,567", "ago|now"),
        ("ru-RU", "1\u00a0234\u00a0567", "назад|сейчас"),
        ("zh-CN", "1,234,567", "前|现在"),
    ):
        app = open_app("/check-ins", author, locale=locale, timezone_id="Asia/Shanghai")
        page = app.page

        def answer(route: Route) -> None:
            reply = route.fetch()
            route.fulfill(
                response=reply, json=reply.json() | {"likes": 1_234_567, "likes_at": "z" * 27}
            )

        page.route(f"**/posts/{post['id']}", answer)
        app.open(f"/posts/{post['id']}")
        expect(page.locator(".reaction.heart .count")).to_have_text(shown)
        expect(page.locator("article time").first).to_contain_text(re.compile(ago))


def test_pages_are_mirrored_for_a_language_from_right_to_left(open_app: OpenApp) -> None:
    app = open_app("/", next(_ids))
    for path in ("/", "/settings", "/check-ins", "/shops"):
        app.open(path)
        page = app.page
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.evaluate("document.documentElement.dir = 'rtl'")
        assert find_wide(page) == [], path
        page.set_viewport_size({"width": 1280, "height": 800})
        box, main = page.locator(".bar").bounding_box(), page.locator("main").bounding_box()
        assert box is not None
        assert main is not None
        assert box["x"] > main["x"]

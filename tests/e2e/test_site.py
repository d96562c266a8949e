"""The documentation site in a browser: its search and its samples."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser import needs_browser
from tests.support.site import build_site, needs_zensical
from tools.lighthouse.server import serve_compressed

pytestmark = [needs_browser, needs_zensical, pytest.mark.deep]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the site."""
    with serve_compressed(build_site(tmp_path_factory.mktemp("site"))) as url:
        yield url


IS_TYPED_INTO = """() => {
  let focused = document.activeElement;
  while (focused?.shadowRoot?.activeElement) focused = focused.shadowRoot.activeElement;
  return focused?.tagName === "INPUT";
}"""


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page whose scripts have to raise no error."""
    errors: list[str] = []
    page = browser.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    page.close()
    assert errors == []


def test_a_question_leads_to_its_answer_in_one_step(page: Page, site: str) -> None:
    page.goto(f"{site}/index.html")
    page.get_by_role("button", name="Search").click()
    page.wait_for_function(IS_TYPED_INTO)  # what is typed before is lost
    page.keyboard.type("Do I need Docker?")
    results = page.locator("li a:visible").filter(has_text="Docker")
    expect(results.first).to_contain_text("Do I need Docker")
    expect(results.last).to_contain_text("Decisions")
    page.keyboard.press("Enter")
    expect(page).to_have_url(
        f"{site}/troubleshooting.html?h=Do+I+need+Docker%3F#"
        "do-i-need-docker-docker-compose-or-an-aws-account"
    )


def test_a_language_that_is_chosen_once_holds_for_all_samples(page: Page, site: str) -> None:
    page.goto(f"{site}/reference/feed.html")
    page.get_by_text("Python", exact=True).first.click()
    expect(page.locator("pre:visible", has_text="plaza.feed.list_posts()")).to_have_count(1)
    page.goto(f"{site}/reference/reactions.html")
    expect(page.locator("pre:visible", has_text="result = plaza.posts.like(")).to_have_count(1)
    expect(page.locator("pre:visible", has_text="-X PUT")).to_have_count(0)

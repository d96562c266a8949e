"""An app with articles of its own gets likes, as docs/guides/own-objects.md prints it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from cli.paths import ROOT
from local.stack.stack import Stack
from tests.e2e.client import wait_until
from tests.e2e.guide_shell import Shell, count_lines, read_sections

GUIDE = ROOT / "docs" / "guides" / "own-objects.md"
SECTIONS = read_sections(GUIDE)
MAX_LIVE_MS = 15_000  # the page asks each five seconds


@pytest.fixture
def shell(stack: Stack, tmp_path: Path) -> Iterator[Shell]:
    opened = Shell(stack, tmp_path / "articles", SECTIONS)
    try:
        yield opened
    finally:
        opened.close()


@pytest.mark.deep
def test_an_app_has_likes_on_its_own_objects_as_the_guide_says(
    shell: Shell, browser: Browser, record_property: Callable[[str, object], None]
) -> None:
    declared = shell.follow(0, 1, 2)[-1]
    assert declared == "8f3a live\ntea-2 live\n"
    shell.follow(3)
    url = f"http://127.0.0.1:{shell.port}"
    wait_until("the app runs", lambda: _is_up(f"{url}/articles/8f3a"))
    pages = []
    for reader in ("cem", "dee"):
        page = browser.new_context().new_page()
        page.goto(f"{url}/sign-in/{reader}")
        pages.append(page)
    for page in pages:
        page.get_by_role("button").click()
    for page in pages:
        expect(page.locator("#likes")).to_have_text("2", timeout=MAX_LIVE_MS)
        expect(page.get_by_role("button")).to_have_attribute("aria-pressed", "true")
    pages[0].get_by_role("button").click()
    expect(pages[1].locator("#likes")).to_have_text("1", timeout=MAX_LIVE_MS)
    assert pages[1].evaluate("document.documentElement.scrollWidth <= innerWidth")
    [imported] = shell.follow(4)
    assert re.search(r"changed +1\b", imported), imported
    wait_until(
        "the old like counts",
        lambda: httpx.get(f"{url}/articles/tea-2/likes").json() == {"likes": 1},
    )
    files, lines, commands = count_lines(SECTIONS)
    assert f"{lines} lines of Python in {files} files and {commands} commands" in GUIDE.read_text()
    record_property("minutes of the commands of own-objects.md", f"{shell.seconds / 60:.1f}")


def _is_up(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.TransportError:
        return False

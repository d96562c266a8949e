"""The web app in a browser: pages that are signed in, checked for errors and accessibility."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    StorageState,
    ViewportSize,
    expect,
    sync_playwright,
)

from local.stack.packages import find_browser
from tests.support.node import MODULES

needs_browser = pytest.mark.skipif(
    find_browser() is None,
    reason="NOT TESTED: there is no Chromium; apt-get install chromium",
)
AXE = MODULES / "axe-core" / "axe.min.js"
PHONE: ViewportSize = {"width": 390, "height": 844}
DESK: ViewportSize = {"width": 1280, "height": 800}
SCHEMES: tuple[tuple[Literal["light", "dark"], str], ...] = (
    ("light", ""),
    ("dark", "{runOnly: ['color-contrast']}"),
)
"""Color schemes, and what axe checks in each."""
TIMEOUT_MS = 60_000
_WIDER = """async (font) => {
  document.documentElement.style.fontSize = font;
  let width = 0;
  for (let frame = 0; frame < 30; frame += 1) { // plots are drawn again in the next ones
    width = document.documentElement.scrollWidth;
    if (width <= innerWidth) return null;
    await new Promise((drawn) => {
      requestAnimationFrame(drawn);
      setTimeout(drawn, 200);
    });
  }
  const outside = [...document.querySelectorAll("main *")].filter(
    (element) => element.getBoundingClientRect().right > innerWidth + 1,
  );
  const name = (element) => `${element.tagName}.${element.className}`;
  return [width, ...outside.slice(0, 8).map(name)];
}"""
"""How wide a page is and what is outside of its window; null if it does not scroll sideways."""
_OFF_CENTRE = """dialog => {
  const { top, bottom } = dialog.getBoundingClientRect();
  return Math.abs(top + bottom - innerHeight);
}"""
DRAWN = """new Promise(done => {
  requestAnimationFrame(() => setTimeout(done));
  setTimeout(done, 2000); // a browser of a busy machine may draw no frames for minutes
})"""
"""Waits until what a click has changed is on the page."""
_REFUSED = re.compile(r"the server responded with a status of (\d+)")


@contextmanager
def open_browser(path: str) -> Iterator[Browser]:
    """Start the Chromium at ``path``. It has no sandbox for root, who cannot use one."""
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    expect.set_options(timeout=TIMEOUT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


def open_context(
    browser: Browser, url: str, session: dict[str, Any] | None = None, **options: Any
) -> BrowserContext:
    """Return a browser of one user, on a phone, signed in to the app at ``url`` with a session."""
    state: StorageState = {"cookies": [], "origins": []}
    if session is not None:
        state["origins"].append(
            {
                "origin": url,
                "localStorage": [{"name": "plaza-session", "value": json.dumps(session)}],
            }
        )
    context = browser.new_context(
        viewport=PHONE,
        bypass_csp=True,  # for axe
        storage_state=state,
        **{"locale": "en-GB", **options},
    )
    context.set_default_timeout(TIMEOUT_MS)
    return context


def describe_session(token: str, user_id: int, nickname: str) -> dict[str, Any]:
    """Return a session as the app stores it."""
    user = {"id": str(user_id), "nickname": nickname, "avatar": None}
    return {"token": token, "expiresAt": (time.time() + 3600) * 1000, "user": user}


def has_any(page: Page, entries: Sequence[object]) -> bool:
    """Return whether there is one, after the browser's events were read."""
    page.wait_for_timeout(20)
    return len(entries) > 0


def confirm(button: Locator, question: str, word: str = "") -> None:
    """Press a button that asks: Enter keeps, a double click ends nothing, its dialog acts. ``word``
    is typed first. Pictures of the dialog go to PLAZA_PICTURES, if that is set."""
    dialog = button.page.get_by_role("dialog", name=question)
    button.click()
    expect(dialog.get_by_role("button", name="Keep it as it is")).to_be_focused(timeout=TIMEOUT_MS)
    assert dialog.evaluate(_OFF_CENTRE) < 2, question
    if directory := os.environ.get("PLAZA_PICTURES"):
        take_pictures(
            button.page, Path(directory), re.sub(r"\W+", "-", question.lower()).strip("-")
        )
    button.page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    button.dblclick()
    button.page.evaluate(DRAWN)
    if not dialog.is_visible():  # the second click was on *keep*
        button.click()
    if word:
        expect(dialog.get_by_role("button").last).to_be_disabled()
        dialog.get_by_role("textbox").fill(word)
    dialog.get_by_role("button").last.click()


def take_pictures(page: Page, directory: Path, name: str) -> None:
    """Write what a window of each size shows to ``directory``. Leaves a phone's size."""
    for size, viewport in (("desk", DESK), ("phone", PHONE)):
        page.set_viewport_size(viewport)
        page.wait_for_function(
            "document.getAnimations().every(a => a.playState !== 'running'"
            " || a.effect.getTiming().iterations === Infinity)"
        )
        page.screenshot(path=directory / f"{name}-{size}.png")


def find_wide(page: Page) -> list[str]:
    """Return the widths at which a page scrolls sideways, with its widest elements; the last one
    is with text twice as large. Leaves a phone's size."""
    wide = []
    for width, font in ((320, ""), (390, ""), (1280, ""), (390, "200%")):
        page.set_viewport_size({"width": width, "height": PHONE["height"]})
        report = page.evaluate(_WIDER, font)
        if report:
            wide.append(f"{report[0]} px of {width} {font}: {', '.join(report[1:])}")
    page.evaluate("document.documentElement.style.fontSize = ''")
    page.set_viewport_size(PHONE)
    return wide


class AppPage:
    """One page of the app, and what its console reported."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self._url = url
        self.errors: list[str] = []
        self.refused: set[int] = set()
        self._allowed: set[tuple[int, str]] = set()
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def open(self, path: str) -> None:
        """Show a page of the app, read again."""
        self.page.goto("about:blank")
        self.page.goto(f"{self._url}/#{path}")

    def allow(self, status: int, path: str) -> None:
        """Do not report responses of ``status`` to requests of ``path``."""
        self._allowed.add((status, path))

    def check_accessibility(self) -> None:
        """Fail if axe finds anything, by day, or too little contrast at night."""
        self.page.add_script_tag(path=AXE)
        for scheme, options in SCHEMES:
            self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            result = self.page.evaluate(f"axe.run({options})")["violations"]
            shown = [
                f"{scheme}: {item['id']}: {item['help']}: {node['html']}: {node['any'][:1]}"
                for item in result
                for node in item["nodes"]
            ]
            assert not shown, "\n".join(shown)
        self.page.emulate_media(color_scheme=None, reduced_motion=None)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning"):
            return
        if message.text.endswith("net::ERR_NAME_NOT_RESOLVED"):
            return  # a picture that another test gave a user or a post
        if refused := _REFUSED.search(message.text):
            # The browser's own note of a 4xx or 5xx.
            status, path = int(refused[1]), urlsplit(message.location["url"]).path
            if (status, path) not in self._allowed:
                self.refused.add(status)
        else:
            self.errors.append(message.text)

"""Takes the screenshots of docs/web.md and docs/console.md, on a stack of its own with the demo
crowd.

python -m tests.e2e.screenshots [--dir DIRECTORY]    DIRECTORY: of a stack that runs already
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, ViewportSize

from cli.paths import ROOT, CommandError, add_layer_to_path
from local.stack.packages import find_browser
from local.stack.stack import Stack
from tests.e2e.browser import AppPage, describe_session, open_browser, open_context

IMAGES = ROOT / "docs" / "images"
WIDE: ViewportSize = {"width": 1180, "height": 780}
READY = "article, .shop, .sale, td, .choices, .verdict"
PAGES = {
    "ranking": "/ranking?window=all",
    "post": "/posts/9000001",
    "shops": "/shops",
    "check-ins": "/check-ins",
}


def main() -> int:
    """Write the images. Returns 1 without a browser or a stack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, help="directory of a stack that runs already")
    args = parser.parse_args()
    add_layer_to_path()
    try:
        if (chromium := find_browser()) is None:
            raise CommandError("Chromium is missing")
        with use_demo(args.dir) as stack, open_browser(chromium) as browser:
            take_app(stack, browser)
            take_console(stack, browser)
    except CommandError as error:
        print(f"plaza: {error}", file=sys.stderr)
        return 1
    return 0


@contextmanager
def use_demo(directory: Path | None) -> Iterator[Stack]:
    """Return the stack in ``directory``; without one, a new stack with the demo crowd."""
    from cli.output import show_step
    from local.load import demo

    if directory is not None:
        yield Stack.load(directory)
        return
    with tempfile.TemporaryDirectory() as made:
        stack = Stack(Path(made))
        try:
            stack.up(step=show_step)
            demo.play(stack)
            yield stack
        finally:
            stack.down()


def take_app(stack: Stack, browser: Browser) -> None:
    """Take each page by day on a phone, one by night, and one on a wide screen."""
    from local.load.demo import FIRST_ID

    app = open_page(stack, browser, FIRST_ID, "Ada 1", reduced_motion="reduce")
    for name, path in PAGES.items():
        app.open(path)
        shoot(app.page, f"web-{name}")
    app.open("/shops")
    app.page.get_by_role("link", name="Linden Food").first.click()
    shoot(app.page, "web-sale", ".sale")
    for name, options in (("night", {"color_scheme": "dark"}), ("wide", {})):
        app = open_page(stack, browser, FIRST_ID, "Ada 1", **options)
        if name == "wide":
            app.page.set_viewport_size(WIDE)
        app.open("/")
        shoot(app.page, f"web-{name}")


def take_console(stack: Stack, browser: Browser) -> None:
    """Take the overview, sales by night, and a stack that a crowd uses without Redis."""
    from local.load.control import OPERATOR

    pages = {"overview": ("/", {}), "sales": ("/sales", {"color_scheme": "dark"})}
    for name, (path, options) in pages.items():
        app = open_page(stack, browser, OPERATOR, "Operator", "admin", "/console", **options)
        app.page.set_viewport_size(WIDE)
        app.open(path)
        shoot(app.page, f"console-{name}", ".verdict, .units")
    app = open_page(stack, browser, OPERATOR, "Operator", "admin", "/console")
    page = app.page
    page.set_viewport_size(WIDE)
    app.open("/break-it")
    for button in ("Start a crowd", "Deliver twice", "Stop Redis"):
        page.get_by_role("button", name=button).click()
    page.get_by_text(re.compile("[1-9][0-9]* provisional")).wait_for()
    page.get_by_role("button", name="Start Redis").click()
    for _ in range(2):
        page.wait_for_function("document.querySelector('progress').value > 300")
        page.get_by_role("button", name="Kill its workers").click()
    page.get_by_role("alert").wait_for(state="detached")
    page.wait_for_function("document.querySelector('progress').value > 500")
    shoot(page, "console-break-it")
    page.get_by_role("button", name="Deliver once").click()


def open_page(
    stack: Stack,
    browser: Browser,
    user_id: int,
    nickname: str,
    role: str = "user",
    site: str = "",
    **options: Any,
) -> AppPage:
    """Return a page that is signed in."""
    from local.stack.tokens import open_sessions

    [token] = open_sessions(stack, [user_id], role)
    session = describe_session(token, user_id, nickname)
    context = open_context(browser, stack.web_url, session, **options)
    return AppPage(context.new_page(), stack.web_url + site)


def shoot(page: Page, name: str, ready: str = READY) -> None:
    """Write one image when the page has its content and no skeleton."""
    page.locator(ready).first.wait_for()
    page.locator(".skeleton").first.wait_for(state="detached")
    IMAGES.mkdir(parents=True, exist_ok=True)
    page.evaluate("document.fonts.ready")
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=IMAGES / f"{name}.png", animations="disabled")
    print(f"docs/images/{name}.png")


if __name__ == "__main__":
    sys.exit(main())

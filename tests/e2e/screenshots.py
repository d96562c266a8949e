"""Takes the screenshots of docs/web.md, on a stack of its own with the demo crowd.

python -m tests.e2e.screenshots [--dir DIRECTORY]    DIRECTORY: of a stack that runs already
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, ViewportSize

from local.paths import ROOT, LocalError, add_layer_to_path
from local.stack.packages import find_browser
from local.stack.stack import Stack
from tests.e2e.browser import AppPage, describe_session, open_browser, open_context

IMAGES = ROOT / "docs" / "images"
WIDE: ViewportSize = {"width": 1180, "height": 780}
READY = "article, .shop, .sale, td, .choices"
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
            raise LocalError("Chromium is missing")
        with use_demo(args.dir) as stack:
            take(stack, chromium)
    except LocalError as error:
        print(f"plaza: {error}", file=sys.stderr)
        return 1
    return 0


@contextmanager
def use_demo(directory: Path | None) -> Iterator[Stack]:
    """Return the stack in ``directory``; without one, a new stack with the demo crowd."""
    from local.load import demo
    from local.stack.up import show_step

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


def take(stack: Stack, chromium: str) -> None:
    """Take each page by day on a phone, one by night, and one on a wide screen."""
    from local.load.demo import FIRST_ID
    from local.stack.tokens import create_users, open_sessions

    create_users(stack.mysql_url, [FIRST_ID], "user")
    [token] = open_sessions(stack, [FIRST_ID])
    session = describe_session(token, FIRST_ID, "Ada 1")
    IMAGES.mkdir(parents=True, exist_ok=True)
    with open_browser(chromium) as browser:
        context = open_context(browser, stack.web_url, session, reduced_motion="reduce")
        app = AppPage(context.new_page(), stack.web_url)
        for name, path in PAGES.items():
            app.open(path)
            shoot(app.page, name)
        app.open("/shops")
        app.page.get_by_role("link", name="Linden Food").first.click()
        shoot(app.page, "sale", ".sale")
        context.close()
        for name, options in (("night", {"color_scheme": "dark"}), ("wide", {})):
            context = open_context(browser, stack.web_url, session, **options)
            app = AppPage(context.new_page(), stack.web_url)
            if name == "wide":
                app.page.set_viewport_size(WIDE)
            app.open("/")
            shoot(app.page, name)
            context.close()


def shoot(page: Page, name: str, ready: str = READY) -> None:
    """Write one image when the page has its content and no skeleton."""
    page.locator(ready).first.wait_for()
    page.locator(".skeleton").first.wait_for(state="detached")
    page.evaluate("document.fonts.ready")
    page.screenshot(path=IMAGES / f"web-{name}.png", animations="disabled")
    print(f"docs/images/web-{name}.png")


if __name__ == "__main__":
    sys.exit(main())

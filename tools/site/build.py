"""``python -m tools docs``: build the documentation site into ``.site/html``, for ``make docs``.

The build fails for a broken link or anchor, and for a page that loads something from another host.
"""

import argparse
import os
import re
import shutil
import subprocess
from pathlib import Path

from cli.paths import ROOT, TOOLS, CommandError
from tools.site.pages import copy_pages, expand_navigation
from tools.site.reference import drop_logo, write_reference
from tools.site.scripts import SCRIPTS, fetch_scripts

SITE = ROOT / ".site"
PAGES, HTML, FETCHED = SITE / "pages", SITE / "html", SITE / "scripts"
HERE = Path(__file__).parent
CONFIGURATION = HERE / "zensical.toml"
SHIM = "https://unpkg.com/iframe-worker/shim"
_LOADED = re.compile(
    r"<(?:script|img|iframe|link(?! rel=.canonical))\b[^>]*(?:src|href)=\"?(https?://[^\s\">]+)"
)


def main(args: argparse.Namespace) -> int:
    """Build the site and print where it is. Raises CommandError."""
    fetch_scripts(FETCHED)
    write_pages()
    build()
    print(
        f"the documentation is in {HTML.relative_to(ROOT)}: open {(HTML / 'index.html').as_uri()}"
    )
    return 0


def write_pages() -> None:
    """Write the sources of the site and its configuration."""
    shutil.rmtree(PAGES, ignore_errors=True)
    (PAGES / "assets").mkdir(parents=True)
    copy_pages(PAGES)
    write_reference(PAGES)
    shutil.copyfile(HERE / "site.css", PAGES / "assets" / "site.css")
    for script in SCRIPTS:
        fetched = FETCHED / script.package
        shutil.copyfile(fetched / script.name, PAGES / "assets" / script.name)
        if script.name == "redoc.js":
            redoc = PAGES / "assets" / script.name
            redoc.write_text(drop_logo(redoc.read_text()))
        shutil.copyfile(fetched / "LICENSE", PAGES / "assets" / f"{script.name}.LICENSE.txt")
    configuration = expand_navigation(CONFIGURATION.read_text(), PAGES)
    (SITE / "zensical.toml").write_text(configuration)


def build() -> None:
    """Build the pages. Raises CommandError with what is broken."""
    shutil.rmtree(HTML, ignore_errors=True)
    completed = subprocess.run(
        [TOOLS / "zensical", "build", "--clean", "--strict"],
        cwd=SITE,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
    )
    if completed.returncode:
        problems = (completed.stdout + completed.stderr).partition("Traceback")[0]
        raise CommandError(f"the site has broken links:\n{problems.strip()}")
    for page in HTML.rglob("*.html"):
        up = "../" * (len(page.relative_to(HTML).parts) - 1)
        page.write_text(page.read_text().replace(SHIM, f"{up}assets/iframe-worker.js"))
        if addresses := _LOADED.findall(page.read_text()):
            raise CommandError(f"{page.relative_to(HTML)} loads {addresses[0]} from another host")

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
from tools.site.llms import write_twins
from tools.site.pages import copy_pages, expand_navigation
from tools.site.reference import drop_logo, write_reference
from tools.site.scripts import SCRIPTS, fetch_scripts
from tools.site.search import extend_search

SITE = ROOT / ".site"
HTML, FETCHED = SITE / "html", SITE / "scripts"
HERE = Path(__file__).parent
CONFIGURATION = HERE / "zensical.toml"
SHIM = "https://unpkg.com/iframe-worker/shim"
_LOADED = re.compile(
    r"<(?:script|img|iframe|link(?! rel=.canonical))\b[^>]*(?:src|href)=\"?(https?://[^\s\">]+)"
)

_SCRIPT = re.compile(r"<script src=")
_PLAIN = re.compile(r'<span class="(?:w|p|n|o|nx|nv)">([^<]*)</span>')
"""White space, punctuation, names and operators."""


def main(args: argparse.Namespace) -> int:
    """Build the site and print where it is. Raises CommandError."""
    fetch_scripts(FETCHED)
    write_pages(SITE)
    add_scripts(SITE / "pages")
    build(SITE)
    print(
        f"the documentation is in {HTML.relative_to(ROOT)}: open {(HTML / 'index.html').as_uri()}"
    )
    return 0


def lighten(page: str) -> str:
    """Return a page whose scripts wait until it is shown, without elements of code that have the
    color of their block: a reference has thousands of them."""
    return _PLAIN.sub(r"\1", _SCRIPT.sub("<script defer src=", page))


def write_pages(site: Path) -> None:
    """Write the sources of the site and its configuration into a directory."""
    pages = site / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    (pages / "assets").mkdir(parents=True)
    copy_pages(pages)
    write_reference(pages)
    for name in ("site.css", "diagrams.js"):
        shutil.copyfile(HERE / name, pages / "assets" / name)
    configuration = expand_navigation(CONFIGURATION.read_text(), pages)
    (site / "zensical.toml").write_text(configuration)


def add_scripts(pages: Path) -> None:
    """Copy the fetched scripts to the pages, with their licenses."""
    for script in SCRIPTS:
        fetched = FETCHED / script.package
        shutil.copyfile(fetched / script.name, pages / "assets" / script.name)
        if script.name == "redoc.js":
            redoc = pages / "assets" / script.name
            redoc.write_text(drop_logo(redoc.read_text()))
        shutil.copyfile(fetched / "LICENSE", pages / "assets" / f"{script.name}.LICENSE.txt")


def build(site: Path) -> None:
    """Build the pages of a directory into its ``html``. Raises CommandError with what is broken."""
    html = site / "html"
    shutil.rmtree(html, ignore_errors=True)
    completed = subprocess.run(
        [TOOLS / "zensical", "build", "--clean", "--strict"],
        cwd=site,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
    )
    if completed.returncode:
        problems = (completed.stdout + completed.stderr).partition("Traceback")[0]
        raise CommandError(f"the site has broken links:\n{problems.strip()}")
    extend_search(html)
    write_twins(site / "pages", html)
    for page in html.rglob("*.html"):
        up = "../" * (len(page.relative_to(html).parts) - 1)
        text = lighten(page.read_text().replace(SHIM, f"{up}assets/iframe-worker.js"))
        page.write_text(text)
        if addresses := _LOADED.findall(text):
            raise CommandError(f"{page.relative_to(html)} loads {addresses[0]} from another host")

"""``python -m tools lighthouse``: print what Lighthouse finds, for ``make lighthouse``.

It measures pages of the running stack and of the built site, as a phone on a slow network loads
them, through a server that compresses as the edge does. Exits 1 while a score is under the minimum.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from cli.paths import ROOT, CommandError
from local.stack.packages import find_browser
from local.stack.stack import Stack
from local.stack.tokens import open_sessions
from tools.lighthouse.server import serve_compressed
from tools.node import find_node, node_environment, npm_command

INSTALLED = ROOT / ".lighthouse"
WORKSPACES = ("clients/typescript", "web/app", "web/console", "tools/lighthouse")
SITE = ROOT / ".site" / "html"
MIN_SCORE = 95
CATEGORIES = ("performance", "accessibility", "best-practices")
SITE_PAGES = ("index.html", "guides/feed-page.html", "reference/content.html", "api.html")
APP_PAGES = {"popular": "/#/ranking?window=all", "shops": "/#/shops"}
SIGNED_IN = {"feed": "/", "profile": "/#/users/7"}
CONSOLE_PAGES = {"overview": "/console/", "queues": "/console/#/queues"}
OPERATOR = 9
USER = 7


def main(args: argparse.Namespace) -> int:
    """Measure what is named, by default all, and print a table. Raises CommandError."""
    if (browser := find_browser()) is None:
        raise CommandError("there is no Chromium; `make test-setup` installs it")
    install()
    with ExitStack() as servers:
        targets = []
        what = args.what or ["app", "console", "site"]
        if "site" in what:
            if not (SITE / "index.html").exists():
                raise CommandError("the site is not built: `make docs` builds it")
            url = servers.enter_context(serve_compressed(SITE))
            targets += [{"name": f"site: {page}", "url": f"{url}/{page}"} for page in SITE_PAGES]
        if {"app", "console"} & set(what):
            stack = Stack.load(args.dir)
            url = servers.enter_context(serve_compressed(stack.web_url))
            targets += list(list_web_pages(stack, url, what))
        reports = measure(targets, browser, args.runs)
    show(reports)
    if (load := os.getloadavg()[0]) > (os.cpu_count() or 1):
        print(f"other programs use this machine (load {load:.0f}): performance is too low here")
    return int(any(score < MIN_SCORE for report in reports for score in report["scores"].values()))


def install() -> None:
    """Install the package as it is locked, if it is not, and the script. Raises CommandError."""
    script = Path("tools", "lighthouse", "run.mjs")
    lock = ROOT / "package-lock.json"
    kept = INSTALLED / "package-lock.json"
    if (INSTALLED / ".ready").exists() and kept.read_bytes() == lock.read_bytes():
        _copy(ROOT / script, INSTALLED / script)
        return
    shutil.rmtree(INSTALLED, ignore_errors=True)
    for name in ("package.json", "package-lock.json", ".npmrc"):
        _copy(ROOT / name, INSTALLED / name)
    for workspace in WORKSPACES:
        path = Path(workspace, "package.json")
        _copy(ROOT / path, INSTALLED / path)
    _copy(ROOT / script, INSTALLED / script)
    command = [*npm_command(), "ci", "--silent", "--ignore-scripts"]
    completed = subprocess.run(
        [*command, "--workspace", "plaza-lighthouse"],
        cwd=INSTALLED,
        env=node_environment(),
        capture_output=True,
        text=True,
    )
    if completed.returncode:
        raise CommandError(f"npm cannot install Lighthouse: {completed.stderr.strip()[-500:]}")
    (INSTALLED / ".ready").touch()


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def list_web_pages(stack: Stack, url: str, what: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the pages of the app and of the console, with a session where they need one."""
    if "app" in what:
        for name, path in APP_PAGES.items():
            yield {"name": f"app: {name}", "url": url + path}
        session = open_session(stack, USER, "user")
        for name, path in SIGNED_IN.items():
            yield {"name": f"app: {name}", "url": url + path, "session": session}
    if "console" in what:
        session = open_session(stack, OPERATOR, "admin")
        for name, path in CONSOLE_PAGES.items():
            yield {"name": f"console: {name}", "url": url + path, "session": session}


def open_session(stack: Stack, user_id: int, role: str) -> dict[str, Any]:
    """Return a session as the web pages store it."""
    [token] = open_sessions(stack, [user_id], role)
    user = {"id": str(user_id), "nickname": f"user {user_id}", "avatar": None}
    return {"token": token, "expiresAt": (time.time() + 3600) * 1000, "user": user}


def measure(targets: list[dict[str, Any]], browser: str, runs: int) -> list[dict[str, Any]]:
    """Return name, scores and failed checks of each page. Raises CommandError."""
    script = INSTALLED / "tools" / "lighthouse" / "run.mjs"
    with _write_profile() as profile:
        settings = {
            "browser": browser,
            "profile": profile,
            "sandbox": os.geteuid() != 0,
            "categories": CATEGORIES,
            "runs": runs,
            "targets": targets,
        }
        completed = subprocess.run(
            [find_node(), script],
            input=json.dumps(settings),
            cwd=INSTALLED,
            env=node_environment(),
            capture_output=True,
            text=True,
        )
    if completed.returncode:
        raise CommandError(f"Lighthouse failed: {completed.stderr.strip()[-1500:]}")
    reports: list[dict[str, Any]] = json.loads(completed.stdout)
    return reports


@contextmanager
def _write_profile() -> Iterator[str]:
    """Yield a directory for the browser, which may still write when it ends."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        yield directory


def show(reports: list[dict[str, Any]]) -> None:
    """Print the scores, and what failed where one is under the minimum."""
    table = Table("page", *CATEGORIES)
    for report in reports:
        scores = [
            f"{score}{'' if score >= MIN_SCORE else ' !'}" for score in report["scores"].values()
        ]
        table.add_row(report["name"], *scores)
    console = Console(highlight=False)
    console.print(table)
    for report in reports:
        if min(report["scores"].values()) < MIN_SCORE:
            console.print(f"{report['name']}:")
            for failed in report["failed"]:
                console.print(f"  {failed}", markup=False, soft_wrap=True)
    versions = sorted({report["version"] for report in reports})
    console.print(
        f"Lighthouse {', '.join(versions)}, a phone on a slow network; minimum {MIN_SCORE}"
    )

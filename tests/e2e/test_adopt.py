"""An app with users, a database and an issuer of its own adopts Plaza, as the guide prints it.

The commands and the code of docs/guides/adopt.md run unchanged but for the port and the checkout.
The test prints what the integration took: lines, commands and minutes.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli.paths import ROOT, CommandError
from local.stack.stack import Stack
from plaza_client import Plaza, Webhook
from tests.e2e.client import read_like_totals, wait_until
from tests.e2e.guide_shell import Shell, count_lines, read_sections

GUIDE = ROOT / "docs" / "guides" / "adopt.md"
APP = ROOT / "examples" / "cookbook"
ANN, BOB, CEM, DEE = range(6_300_001, 6_300_005)
SOUP, PIE, TEA = range(6_300_101, 6_300_104)
MAX_DELIVERY_S = 150  # of an event; a run that begins may take 45 s

ROWS = f"""
INSERT INTO person VALUES ({ANN}, 'ann', '2024-01-01 08:00:00'),
  ({BOB}, 'bob', '2024-01-02 08:00:00'), ({CEM}, 'cem', '2024-01-03 08:00:00');
INSERT INTO session VALUES ('session-{ANN}', {ANN}), ('session-{BOB}', {BOB}),
  ('session-{CEM}', {CEM});
INSERT INTO recipe VALUES ({SOUP}, {ANN}, 'Soup', 'Boil it.', '2024-02-01 08:00:00'),
  ({PIE}, {BOB}, 'Pie', 'Bake it.', '2024-02-02 08:00:00');
INSERT INTO recipe_like VALUES ({ANN}, {SOUP}, '2024-03-01 08:00:00'),
  ({BOB}, {SOUP}, '2024-03-02 08:00:00'), ({ANN}, {PIE}, '2024-03-03 08:00:00');
INSERT INTO fan VALUES ({BOB}, {ANN}, '2024-04-01 08:00:00');
"""


SECTIONS = read_sections(GUIDE)


@pytest.fixture
def dispatching(stack: Stack) -> Iterator[None]:
    """DispatchWebhooks runs all the time, not only from the next minute on."""
    over = threading.Event()

    def dispatch() -> None:
        while not over.wait(1):
            with suppress(CommandError, OSError):  # the stack ends
                stack.invoke("DispatchWebhooks", {})

    threading.Thread(target=dispatch, daemon=True).start()
    yield
    over.set()


@pytest.fixture
def shell(stack: Stack, tmp_path: Path) -> Iterator[Shell]:
    """A shell that begins in the checkout, and copies the app into an empty home. At the end its
    webhook is ended."""
    before = sorted(APP.parent.rglob("*"))
    opened = Shell(stack, tmp_path / "cookbook", SECTIONS)
    try:
        yield opened
        opened.run('test -z "${MADE:-}" || plaza ops webhooks end "${MADE%% *}"')
    finally:
        opened.close()
    assert sorted(APP.parent.rglob("*")) == before, "nothing is left in the checkout"


class App:
    """The app as its people use it, by their cookies, and its database."""

    def __init__(self, port: int, directory: Path) -> None:
        self._url, self._database = f"http://127.0.0.1:{port}", directory / "cookbook.db"
        self._log = directory / "app.log"

    def ask(self, method: str, path: str, person: int = ANN, **options: Any) -> httpx.Response:
        """Send a request as a person."""
        cookies = {"session": f"session-{person}"}
        with httpx.Client(cookies=cookies, timeout=30) as client:
            return client.request(method, self._url + path, **options)

    def runs(self) -> bool:
        try:
            return self.ask("GET", f"/recipes/{SOUP}").status_code == 200
        except httpx.TransportError:
            return False

    def like(self, recipe: int, person: int, method: str = "PUT") -> tuple[int, bool]:
        """Press the button; return what the app answers."""
        response = self.ask(method, f"/recipes/{recipe}/like", person)
        assert response.status_code == 200, self._log.read_text()
        return response.json()["likes"], response.json()["liked"]

    def list_activity(self, recipe: int) -> list[tuple[str, int]]:
        """Return (type, person) of each event of a recipe, in the order of their times."""
        items = self.ask("GET", f"/recipes/{recipe}/activity").json()
        return [(item["type"], item["person"]) for item in items]

    def execute(self, sql: str) -> list[Any]:
        with closing(sqlite3.connect(self._database, timeout=10)) as db, db:
            return db.execute(sql).fetchall()


@pytest.mark.usefixtures("dispatching")
@pytest.mark.deep
def test_the_cookbook_adopts_plaza_as_the_guide_says(
    stack: Stack,
    shell: Shell,
    tmp_path: Path,
    rows: Callable[..., Any],
    capfd: pytest.CaptureFixture[str],
) -> None:
    began_s = time.monotonic()
    directory = tmp_path / "cookbook"
    app = App(shell.port, directory)
    shell.follow(0)
    shell.run("python -c 'import cookbook; cookbook.connect().__enter__()'")
    with closing(sqlite3.connect(directory / "cookbook.db")) as db:
        db.executescript(ROWS)

    # Everything that the app has is imported, and the numbers are the source's.
    imported = shell.follow(1, 2, 3)[-1]
    assert "differ" not in imported
    assert [read_like_totals(rows, recipe) for recipe in (SOUP, PIE)] == [(2, 2), (1, 1)]
    assert rows(
        "SELECT followers_total, posts_total, likes_received_total"
        " FROM user_counter WHERE user_id = %s",
        ANN,
    ) == ((1, 1, 2),)

    # Until the new button is there, the old one stores a like, a person and a recipe.
    now = "'2026-01-01 08:00:00'"
    app.execute(f"INSERT INTO recipe_like VALUES ({CEM}, {SOUP}, {now})")
    app.execute(f"INSERT INTO person VALUES ({DEE}, 'dee', {now}, NULL)")
    app.execute(f"INSERT INTO session VALUES ('session-{DEE}', {DEE})")
    app.execute(f"INSERT INTO recipe VALUES ({TEA}, {CEM}, 'Tea', 'Brew it.', {now}, NULL)")
    shell.follow(4, 5)
    wait_until("the app runs", app.runs)
    shell.run("python export.py")
    shell.follow(3)
    assert read_like_totals(rows, SOUP) == (3, 3)

    # The button is live: likes of the old one, presses that count once, people and recipes that
    # are new.
    assert app.ask("GET", f"/recipes/{SOUP}/like", BOB).json() == {"likes": 3, "liked": True}
    assert [app.like(SOUP, DEE) for _ in range(2)] == [(4, True)] * 2
    assert app.like(SOUP, BOB, "DELETE") == (3, False)
    assert app.like(TEA, DEE) == (1, True)
    new = app.ask("POST", "/people", params={"name": "eve"}).json()["id"]
    cake = app.ask("POST", "/recipes", new, params={"title": "Cake", "text": "Bake it."}).json()
    assert app.like(cake["id"], new) == (1, True)
    assert app.like(cake["id"], ANN) == (2, True)
    assert app.ask("GET", "/recipes/1/like").status_code == 404

    # Its events arrive, signed, in order, and name the people of the app.
    first = [("like.added", DEE), ("like.removed", BOB)]
    wait_until(
        "events are received", lambda: app.list_activity(SOUP) == first, timeout_s=MAX_DELIVERY_S
    )
    wait_until(
        "events of what is new are received",
        lambda: app.list_activity(cake["id"]) == [("like.added", new), ("like.added", ANN)],
        timeout_s=MAX_DELIVERY_S,
    )
    integrated_s = time.monotonic() - began_s
    forged = Webhook(f"whsec_{'A' * 44}").sign("{}", "like_added_1")
    assert app.ask("POST", "/plaza/events", content="{}", headers=forged).status_code == 400

    # While the app is down, people like elsewhere, and events wait.
    shell.run("kill $!; wait $! || true")
    assert not app.runs()
    at = datetime.now(UTC)
    issuer, key = shell.run("echo $PLAZA_ISSUER $PLAZA_KEY").split()
    with Plaza(stack.base_url, token=key) as plaza:
        plaza.act_as(f"{issuer}|{ANN}").posts.unlike(str(SOUP))
        plaza.act_as(f"{issuer}|{BOB}").posts.like(str(SOUP))
    webhook_id = shell.run("echo ${MADE% *}").strip()
    failures = "SELECT failures FROM webhook WHERE id = %s"
    wait_until(
        "the webhook fails", lambda: rows(failures, webhook_id)[0][0], timeout_s=MAX_DELIVERY_S
    )
    [start] = [b for b in SECTIONS[5] if not b.kind]
    shell.run(shell._adapt(start.text))
    wait_until("the app runs again", app.runs)
    whole = [*first, ("like.removed", ANN), ("like.added", BOB)]
    wait_until(
        "what happened meanwhile is received",
        lambda: app.list_activity(SOUP) == whole,
        timeout_s=MAX_DELIVERY_S,
    )

    # The database is restored to before that, and a replay brings it back, each event once.
    app.execute(f"DELETE FROM activity WHERE at > '{at:%Y-%m-%dT%H:%M:%S}'")
    assert app.list_activity(SOUP) == first
    shell.run(f"SINCE={at:%Y-%m-%dT%H:%M:%SZ}")
    shell.follow(6)
    wait_until(
        "what was lost is received again",
        lambda: app.list_activity(SOUP) == whole,
        timeout_s=MAX_DELIVERY_S,
    )
    assert read_like_totals(rows, SOUP) == (3, 3)

    # An ID token of the issuer opens a session of the imported user.
    assert f'"user":{{"id":"{ANN}","nickname":"ann"' in shell.follow(7)[-1].replace(" ", "")

    files, lines, commands = count_lines(SECTIONS)
    assert f"{lines} lines of Python in {files} files and {commands} commands" in GUIDE.read_text()
    with capfd.disabled():
        print(
            f"\nadopted with {lines} lines in {files} files and {commands} commands, which ran for"
            f" {shell.seconds / 60:.1f} minutes; the first event after {integrated_s / 60:.1f}"
        )

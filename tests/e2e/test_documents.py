"""The requests in README, docs/api.md and the guides run as printed, and get what is printed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from shlex import quote
from typing import Any

import pytest

from cli.paths import LAYER, ROOT, CommandError
from local.stack.parts import describe_environment
from local.stack.stack import Stack
from tests.e2e.client import Client, wait_until
from tests.e2e.stack_runner import DEMO_POST
from tools.node import find_node

FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def run(stack: Stack, script: str) -> str:
    """Run lines of a document in a shell, with the URL of ``stack``; return their output."""
    script = re.sub(r"^URL=\S+.*$", "", script, flags=re.MULTILINE)
    script = re.sub(
        r"\.venv/bin/python -m (local|ops)",
        rf"{PYTHON} -m \1 --dir {stack.directory}",
        script,
    )
    completed = subprocess.run(
        ["bash", "-euc", f"URL={stack.base_url}\n{script}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


GUIDES = ROOT / "docs" / "guides"
PYTHON = quote(sys.executable)
SEPARATOR = "\x1e"
OLD_TABLES = """
DROP DATABASE IF EXISTS app;
CREATE DATABASE app;
CREATE TABLE app.user (id BIGINT PRIMARY KEY, name VARCHAR(64), created_at DATETIME);
CREATE TABLE app.post (id BIGINT PRIMARY KEY, user_id BIGINT, title VARCHAR(200), body TEXT,
  likes INT, created_at DATETIME);
CREATE TABLE app.post_like (user_id BIGINT, post_id BIGINT, created_at DATETIME);
INSERT INTO app.user VALUES (6100001, 'Ada', '2024-01-01'), (6100002, 'Ben', '2024-01-01');
INSERT INTO app.post VALUES (6100101, 6100001, 'Hello', 'First post', 2, '2024-02-01');
INSERT INTO app.post_like VALUES (6100001, 6100101, '2024-03-01'), (6100002, 6100101, '2024-03-02');
"""


class Guide:
    """Runs the blocks of a guide in one shell, in a directory of its own. The slowest
    commands, which have tests of their own, are left out."""

    def __init__(self, stack: Stack, directory: Path, sign_in: Callable[..., str]) -> None:
        self._stack, self._directory, self._sign_in = stack, directory, sign_in

    def __call__(self, name: str) -> list[tuple[str, Any, str]]:
        """Return (block, the JSON that is printed after it, its output) of each shell block."""
        blocks = FENCED.findall((GUIDES / name).read_text())
        shell = [
            (text, pairs)
            for (kind, text), pairs in zip(blocks, [*blocks[1:], ("", "")], strict=True)
            if not kind
        ]
        script = "\n".join(self._to_shell(*block) for block in blocks)
        completed = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self._directory,
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{LAYER}"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert completed.returncode == 0, completed.stderr
        outputs = completed.stdout.split(SEPARATOR)[:-1]
        return [
            (text, json.loads(printed) if kind == "json" else None, output)
            for (text, (kind, printed)), output in zip(shell, outputs, strict=True)
        ]

    def _to_shell(self, kind: str, text: str) -> str:
        if kind in ("sql", "js"):
            named = re.match(r"(?://|--) ([\w.-]+)\n", text)
            assert named, f"a reader does not know what to do with it: {text}"
            (self._directory / named[1]).write_text(text)
            return ""
        if kind:
            return ""
        text = re.sub(r"^.*local (?:audit|flash-sale) .*$", "", text, flags=re.MULTILINE)
        text = re.sub(
            r"\$\(\S+ -m local token --user (\d+)(?: --role (\w+))?\)",
            lambda match: self._sign_in(int(match[1]), role=match[2] or "user"),
            text,
        )
        text = re.sub(
            r"\.venv/bin/python( -m (?:local|ops))?",
            lambda match: (
                PYTHON + (f"{match[1]} --dir {self._stack.directory}" if match[1] else "")
            ),
            text,
        )
        return f"{text}printf '{SEPARATOR}'"


@pytest.fixture
def guide(stack: Stack, tmp_path: Path, sign_in: Callable[..., str]) -> Guide:
    return Guide(stack, tmp_path, sign_in)


def shape(value: Any) -> Any:
    """Return the names of a JSON value, its booleans and words; of a list: of one item. Without the
    kind of tests, which the stack of a reader has not."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items() if name != "bookmark"}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return value if isinstance(value, bool) or value in ("success", "Ten coffees") else ...


def require_printed(result: list[tuple[str, Any, str]]) -> None:
    """Check that the output of each block has the shape of the JSON after it."""
    compared = [(shape(json.loads(out)), shape(printed)) for _, printed, out in result if printed]
    assert compared
    assert [output for output, _ in compared] == [printed for _, printed in compared]


def test_the_guide_of_the_like_button_is_true(guide: Guide, user: Callable[[int], Client]) -> None:
    path = f"/posts/{DEMO_POST}/likes/me"
    user(7)("DELETE", path)
    assert user(8)("PUT", path).status == 200
    wait_until(
        "the like is listed", lambda: user(8)("GET", f"/posts/{DEMO_POST}/likers").json["items"]
    )
    require_printed(guide("like-button.md"))


CLICKS = """
import { likeButton } from "./like-button.mjs";
const [, , url, token, id] = process.argv;
const shown = [], element = { set textContent(text) { shown.push(text) }, setAttribute() {} };
let open = 0, most = 0;
const send = globalThis.fetch;
globalThis.fetch = async (...args) => {
  most = Math.max(most, ++open);
  try { return await send(...args) } finally { open-- }
};
likeButton(element, { id, likes: 0, mine: { liked: false } }, url, token);
element.onclick(); element.onclick(); element.onclick();
const clicks = shown.length;
while (open || shown.length === clicks) await new Promise((done) => setTimeout(done, 20));
console.log([...shown.slice(0, clicks), shown.at(-1), `${most} at a time`].join(", "));
"""
"""Clicks three times at once: on, off, on."""


def test_the_button_of_the_guide_keeps_the_last_wish(
    stack: Stack, tmp_path: Path, sign_in: Callable[..., str], add: Callable[..., int]
) -> None:
    try:
        node = find_node()
    except CommandError as error:
        pytest.skip(str(error))
    [code] = [
        code
        for kind, code in FENCED.findall((GUIDES / "like-button.md").read_text())
        if kind == "js"
    ]
    (tmp_path / "like-button.mjs").write_text(code)
    (tmp_path / "click.mjs").write_text(CLICKS)
    completed = subprocess.run(
        [node, "click.mjs", stack.base_url, sign_in(7), str(add())],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (completed.stdout, completed.stderr) == ("♡ 0, ♥ 1, ♡ 0, ♥ 1, ♥ 1, 1 at a time\n", "")


def test_the_guide_of_the_flash_sale_is_true(guide: Guide) -> None:
    require_printed(guide("flash-sale.md"))


def test_the_guides_of_the_import_move_likes_exactly(
    stack: Stack, guide: Guide, rows: Callable[..., Any], tmp_path: Path
) -> None:
    """Given old tables, from which one like is removed after the first copy."""
    (tmp_path / "app.sql").write_text(OLD_TABLES)
    script = "\n".join([*describe_environment(stack), "mysql < app.sql"])
    subprocess.run(["bash", "-euc", script], cwd=tmp_path, check=True)
    guide("import-likes.md")
    of_post = "target_type = 'post' AND target_id = 6100101"
    total = f"SELECT total FROM counter WHERE {of_post} AND kind = 'like'"
    assert rows(total) == ((2,),)
    assert rows(
        "SELECT posts_total, likes_received_total FROM user_counter WHERE user_id = 6100001"
    ) == ((1, 2),)
    rows("DELETE FROM app.post_like WHERE user_id = 6100002")
    guide("counter-column.md")
    assert rows(total) == ((1,),)
    assert rows(f"SELECT actor_id FROM reaction WHERE {of_post} AND state = 1") == ((6_100_001,),)
    rows("DROP DATABASE app")


def token_line() -> str:
    """The line of README that sets TOKEN."""
    [line] = re.findall(r"^TOKEN=.*$", (ROOT / "README.md").read_text(), re.MULTILINE)
    return str(line)


def test_the_request_of_the_readme_gets_the_response_that_is_printed(stack: Stack) -> None:
    [block] = [
        block for _, block in FENCED.findall((ROOT / "README.md").read_text()) if "curl" in block
    ]
    lines = block.splitlines()
    printed = [line for line in lines if line.startswith("{")]
    script = "\n".join(line for line in lines if not line.startswith("{"))
    first = json.loads(run(stack, script))
    assert [first.keys()] == [json.loads(line).keys() for line in printed]
    assert (first["liked"], first["exact"]) == (True, True)
    assert json.loads(run(stack, script))["changed"] is False, "a like counts once"


def examples() -> list[tuple[str, dict[str, Any]]]:
    """(request, response) of docs/api.md, without sign-in and a sale."""
    blocks = FENCED.findall((ROOT / "docs" / "api.md").read_text())
    return [
        (request, json.loads(response))
        for (_, request), (kind, response) in pairwise(blocks)
        if "curl" in request and kind == "json" and not re.search(r"/auth/|/orders", request)
    ]


@pytest.mark.parametrize(("request_text", "response"), examples())
def test_an_example_of_the_api_page_is_true(
    stack: Stack, request_text: str, response: dict[str, Any]
) -> None:
    token = token_line().replace("--user 7", "--user 6100003 --role admin")
    line = token if "/ops/" in request_text else token_line()
    document = json.loads(run(stack, f"{line}\n{request_text}"))
    assert document.keys() == response.keys()
    of_this_stack = {
        "type": response.get("type", "").replace("http://127.0.0.1:8081", stack.web_url)
    }
    for name in ("type", "title", "status", "detail"):
        assert document.get(name, "") == (response | of_this_stack).get(name, "")


def test_the_api_page_has_examples() -> None:
    assert len(examples()) >= 4

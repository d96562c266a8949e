"""The requests in README and docs/api.md run as they are printed, and get what is printed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from local.paths import ROOT
from local.stack.stack import Stack

POST = 9_000_001  # of the demo, which the examples use
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def _demo_post(rows: Callable[..., tuple[Any, ...]]) -> None:
    rows(
        "INSERT IGNORE INTO content (content_type, content_id, author_id) VALUES ('post', %s, %s)",
        POST,
        POST,
    )


def run(stack: Stack, script: str) -> str:
    """Run lines of a document in a shell, with the URL of ``stack``; return their output."""
    script = re.sub(r"^URL=\S+.*$", "", script, flags=re.MULTILINE)
    script = script.replace(
        ".venv/bin/python -m local", f"{sys.executable} -m local --dir {stack.directory}"
    )
    done = subprocess.run(
        ["bash", "-euc", f"URL={stack.base_url}\n{script}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


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
    """(request, response) of docs/api.md, without those of sign-in and of a sale."""
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
    found = json.loads(run(stack, f"{token_line()}\n{request_text}"))
    assert found.keys() == response.keys()
    for name in ("type", "title", "status", "detail"):
        assert found.get(name) == response.get(name)


def test_the_api_page_has_examples() -> None:
    assert len(examples()) >= 4

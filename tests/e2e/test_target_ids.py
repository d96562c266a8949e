"""Ids of the app at the edges of their form, as they travel through a URL to a row and back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest

from cli.paths import ROOT
from local.stack.stack import Stack
from local.stack.tokens import open_sessions

READER = 6_400_001
ODD = [
    *("a" * 64, "a" * 63 + "b", "a" * 63 + "B", "A" * 64, "0", "00"),
    *("a:b.c_d-e", "a..b", "a--", "7:8"),
]
WRONG = [
    *("a" * 65, "-a", ".a", "_a", ":a", "a b", "a/b", "a%b", "é", "a\u200b", "a\n"),
    *("a+b", "a,b", "a?b", "a#b"),
]


@pytest.fixture(scope="module")
def key(stack: Stack) -> str:
    command = ("server-keys", "make", "--scope", "act", "--scope", "read", "ids")
    return subprocess.run(
        [sys.executable, "-m", "ops", "--dir", str(stack.directory), *command],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout.strip()


@pytest.fixture
def api(stack: Stack) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=stack.base_url, timeout=60) as client:
        yield client


def escape(text: str) -> str:
    """Percent-encode every byte, as no client does and every client may."""
    return "".join(f"%{byte:02X}" for byte in text.encode())


def test_each_id_is_a_target_of_its_own_however_it_is_escaped(
    stack: Stack, api: httpx.Client, key: str
) -> None:
    server = {"authorization": f"Bearer {key}"}
    for odd in ODD:
        made = api.put(f"/targets/article/{escape(odd)}", json={}, headers=server)
        assert (made.status_code, made.json()["id"]) == (200, odd)
    [token] = open_sessions(stack, [READER])
    mine = {"authorization": f"Bearer {token}"}
    for number, odd in enumerate(ODD):
        path = f"/targets/article/{(quote, escape)[number % 2](odd)}/reactions/like/me"
        liked = api.put(path, headers=mine)
        assert (liked.status_code, liked.json()["total"]) == (200, 1), odd
    of = ",".join(f"article:{odd}" for odd in ODD)
    items = api.get("/totals", params={"of": of}).json()["items"]
    assert [(item["id"], item["likes"]) for item in items] == [(odd, 1) for odd in ODD]


@pytest.mark.parametrize("wrong", WRONG, ids=ascii)
def test_what_is_no_id_is_not_found(api: httpx.Client, key: str, wrong: str) -> None:
    for text in {escape(wrong), quote(wrong, safe="")}:
        made = api.put(
            f"/targets/article/{text}", json={}, headers={"authorization": f"Bearer {key}"}
        )
        assert made.status_code == 404, made.text
    named = {"type": "article", "id": wrong}
    assert api.post("/reactions/query", json={"targets": [named]}).status_code == 400

"""What a session is and how its token is read."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaza.auth.sessions import Session, hash_token, make_token, read_bearer

TTL_S = 3_600
TOKEN = "A" * 21 + "_-" + "9" * 20


def session(expires_at_s: int) -> Session:
    return Session(7, "user", expires_at_s)


@pytest.mark.parametrize(("now_s", "over"), [(999.9, False), (1000, True), (1000.1, True)])
def test_a_session_is_over_when_its_end_has_come(now_s: float, over: bool) -> None:
    assert session(1000).is_over(now_s) is over


def test_the_end_of_a_session_is_moved_once_a_minute_at_most() -> None:
    opened_s = 10_000
    fresh = session(opened_s + TTL_S)
    assert not fresh.wants_touch(opened_s, TTL_S)
    assert not fresh.wants_touch(opened_s + 60, TTL_S)
    assert fresh.wants_touch(opened_s + 60.001, TTL_S)


def test_tokens_are_long_and_never_the_same() -> None:
    tokens = {make_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", token) for token in tokens)


def test_what_is_stored_of_a_token_is_its_sha_256() -> None:
    assert hash_token(TOKEN) == hashlib.sha256(TOKEN.encode()).digest()


def test_a_token_that_we_make_is_read_from_its_header() -> None:
    token = make_token()
    assert read_bearer(f"Bearer {token}") == token


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer {TOKEN}", f" Bearer   {TOKEN} "])
def test_the_word_before_a_token_may_be_written_in_these_ways(header: str) -> None:
    assert read_bearer(header) == TOKEN


@pytest.mark.parametrize(
    "header",
    [
        "",
        " ",
        "Bearer",
        "Bearer ",
        TOKEN,
        f"Basic {TOKEN}",
        f"Bearer{TOKEN}",
        f"Bearer\t{TOKEN}",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN}A",
        f"Bearer {TOKEN}\nX-Other: 1",
        f"Bearer {TOKEN},{TOKEN}",
        f"Bearer {TOKEN} {TOKEN}",
        f"Bearer {TOKEN[:-1]}=",
        f"Bearer {TOKEN[:-1]}'",
        f"Bearer {TOKEN[:-1]}é",
        f"Bearer {TOKEN[:-1]}٣",
        f"Bearer {TOKEN[:-1]}\x00",
        f"Bearer {TOKEN[:-1]}\ud800",
        "Bearer " + "A" * 100_000,
        " " * 100_000 + "x",
        "Bearer " + " " * 50_000 + "!",
    ],
    ids=lambda header: f"{header[:24]!r}",
)
def test_a_header_that_holds_no_token_of_ours_is_none(header: str) -> None:
    assert read_bearer(header) is None


@given(st.text(max_size=80))
def test_whatever_a_header_holds_it_is_a_token_or_none(text: str) -> None:
    for header in (text, f"Bearer {text}"):
        found = read_bearer(header)
        assert found is None or re.fullmatch(r"[A-Za-z0-9_-]{43}", found)

"""Sessions and their tokens."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaza.people.auth.sessions import Session, hash_token, make_token, parse_bearer

TTL_S = 3_600
TOKEN = "A" * 21 + "_-" + "9" * 20


def session(expires_at_s: int, ends_at_s: int = 10**10, checked_at_s: int = 0) -> Session:
    return Session(7, "user", expires_at_s, ends_at_s, checked_at_s)


@pytest.mark.parametrize(("now_s", "over"), [(999.9, False), (1000, True), (1000.1, True)])
def test_a_session_is_over_at_its_expiry_or_absolute_end(now_s: float, over: bool) -> None:
    assert session(1000).is_over(now_s) is over
    assert session(10**10, ends_at_s=1000).is_over(now_s) is over


def test_a_session_is_extended_after_a_hundredth_of_its_ttl() -> None:
    opened_s = 10_000
    fresh = session(opened_s + TTL_S)
    assert not fresh.needs_extension(opened_s, TTL_S)
    assert not fresh.needs_extension(opened_s + 36, TTL_S)
    assert fresh.needs_extension(opened_s + 37, TTL_S)


def test_a_session_is_never_extended_past_its_absolute_end() -> None:
    last = session(10_000, ends_at_s=10_050)
    assert last.next_expiry_s(9_990, TTL_S) == 10_050
    assert last.needs_extension(9_990, TTL_S)
    assert not session(10_050, ends_at_s=10_050).needs_extension(10_049, TTL_S)


def test_a_session_is_checked_a_minute_after_its_last_read_from_mysql() -> None:
    assert not session(10_000, checked_at_s=5_000).needs_check(5_060)
    assert session(10_000, checked_at_s=5_000).needs_check(5_060.001)


def test_tokens_are_long_and_unique() -> None:
    tokens = {make_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", token) for token in tokens)


def test_the_hash_of_a_token_is_its_sha_256() -> None:
    assert hash_token(TOKEN) == hashlib.sha256(TOKEN.encode()).digest()


def test_a_generated_token_is_parsed_from_its_header() -> None:
    token = make_token()
    assert parse_bearer(f"Bearer {token}") == token


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer {TOKEN}", f" Bearer   {TOKEN} "])
def test_the_scheme_of_a_header_may_vary_in_case_and_spaces(header: str) -> None:
    assert parse_bearer(header) == TOKEN


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
def test_a_malformed_header_has_no_token(header: str) -> None:
    assert parse_bearer(header) is None


@given(st.text(max_size=80))
def test_any_header_has_a_token_or_none(text: str) -> None:
    for header in (text, f"Bearer {text}"):
        bearer = parse_bearer(header)
        assert bearer is None or re.fullmatch(r"[A-Za-z0-9_-]{43}", bearer)

"""Rules for texts that users write."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaza.infra.http.texts import HTTPS_URL, VISIBLE, check_line, check_text, trim

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
INVISIBLE = ["", " ", "\xa0", "\u3000", "\u200b", "\u200d\u200c", "\ufeff", "\u3164", "\u2800",
           "\u00ad", "\ufe0f", "\U000e0041", "\u2060 \u034f",
           "\ufff9", "\ufffc", "\u0301", "\ue000"]  # fmt: skip
CONTROLS = ["\x00", "\x07", "\x0b", "\x0c", "\r", "\x1b", "\x7f", "\x85", "\u2028", "\u2029",
            "\u202e", "\u2066"]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["a", "Zoë", "王小明", "אבג", "می\u200cخواهم", "O'Neil <b>", FAMILY, "❤\ufe0f", " a ", "0"],
)
def test_visible_text_is_accepted(text: str) -> None:
    assert check_line(text) == text
    assert check_text(f"{text}\n\t{text}") == f"{text}\n\t{text}"


@pytest.mark.parametrize("text", INVISIBLE, ids=ascii)
def test_text_without_a_visible_character_is_refused(text: str) -> None:
    for check in (check_line, check_text):
        with pytest.raises(ValueError, match="no visible character"):
            check(text)


@pytest.mark.parametrize("character", CONTROLS, ids=ascii)
def test_control_characters_are_refused_and_named(character: str) -> None:
    for check in (check_line, check_text):
        with pytest.raises(ValueError, match=rf"U\+{ord(character):04X} at 1 is"):
            check(f"a{character}b")


@pytest.mark.parametrize("character", ["\n", "\t"], ids=ascii)
def test_a_text_may_have_line_breaks_and_a_line_may_not(character: str) -> None:
    with pytest.raises(ValueError, match="control character"):
        check_line(f"a{character}b")
    assert check_text(f"a{character}b")


_odd = "".join([*INVISIBLE, *CONTROLS, "\n\ta é", FAMILY])


@given(st.text(max_size=8) | st.text(st.sampled_from(_odd), max_size=8))
def test_every_valid_text_matches_the_pattern_of_the_contract(text: str) -> None:
    for check in (check_line, check_text):
        try:
            check(text)
        except ValueError:
            continue
        assert re.search(VISIBLE, text)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (" ada ", "ada"),
        ("ada\u200b", "ada"),
        ("\u2060\xa0ada\u3164\ufeff", "ada"),
        ("ada\u200d", "ada"),
        ("a\u200bda", "a\u200bda"),
        ("\u2764\ufe0f", "\u2764\ufe0f"),
        ("\xa0" * 30, ""),
    ],
    ids=ascii,
)
def test_invisible_characters_around_a_text_are_removed(sent: str, kept: str) -> None:
    assert trim(sent) == kept
    assert trim(17) == 17


def test_a_long_text_is_trimmed_in_linear_time() -> None:
    began_s = time.process_time()
    assert trim("a" + "\u200b" * 60_000 + "a") == "a" + "\u200b" * 60_000 + "a"
    assert time.process_time() - began_s < 0.5


def test_a_long_invisible_text_is_refused_in_linear_time() -> None:
    with pytest.raises(ValueError, match="control character"):
        check_text("a" * 60_000 + "\x00")
    with pytest.raises(ValueError, match="no visible character"):
        check_text("\u200b" * 60_000)


@pytest.mark.parametrize(
    ("url", "good"),
    [
        ("https://pics.example/a.png", True),
        ("https://pics.example:8443/a/b.png?size=80#top", True),
        ("https://pics.example", True),
        ("https://xn--bcher-kva.example/%C3%A9", True),
        ("http://pics.example/a.png", False),
        ("https://", False),
        ("https:///a.png", False),
        ("https://user:pass@pics.example/a.png", False),
        ("https://pics.example/a b.png", False),
        ("https://pics.example/é", False),
        ("https://pics.example\\@evil.example", False),
        ("javascript:alert(1)", False),
        (" https://pics.example", False),
        ("HTTPS://pics.example", False),
    ],
)
def test_an_image_url_is_https(url: str, good: bool) -> None:
    assert bool(re.search(HTTPS_URL, url)) is good

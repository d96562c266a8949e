"""Rules for texts that users write: checks, and what the API contract has of them.

A check raises FieldError, for which a ``RequestModel`` returns a 400. The contract has ``VISIBLE``
and a sentence: one pattern for the whole rule would be long and take quadratic time.
"""

from __future__ import annotations

import re
import unicodedata

# Without U+200C and U+200D, which join letters and emoji.
_CONTROL = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
_BREAKS = r"\t\n"
_SPACE = r" \xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
# Default_Ignorable_Code_Point of Unicode, a Braille cell without dots, and marks of annotations.
_INVISIBLE = (
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u2065\u206a-\u206f"
    r"\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_NOT_VISIBLE = f"{_CONTROL}{_BREAKS}{_SPACE}{_INVISIBLE}"

# For the contract: a short pattern that every valid text matches, and sentences.
VISIBLE = r"\S"
LINE_RULE = (
    "One line of text with at least one visible character. Control characters, line breaks and "
    "tabs are refused."
)
TEXT_RULE = (
    "Text with at least one visible character. Line breaks and tabs are allowed, other control "
    "characters are refused."
)
HTTPS_URL = r"^https://[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?([/?#][!-~]*)?$"


class FieldError(ValueError):
    """A field has an invalid value; ``code`` says how, for programs."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


_not_in_line = re.compile(f"[{_CONTROL}{_BREAKS}]")
_not_in_text = re.compile(f"[{_CONTROL}]")
_visible = re.compile(f"[^{_NOT_VISIBLE}]")
_JOINS_EMOJI = "\ufe00-\ufe0f\U000e0020-\U000e007f"  # the end of a heart, or of a flag
_blank = re.compile(f"(?:(?![{_JOINS_EMOJI}])[{_SPACE}{_BREAKS}{_INVISIBLE}])*")
# Marks without a letter, private use, surrogates, control and format characters.
_HAVE_NO_GLYPH = frozenset(("Mn", "Me", "Co", "Cs", "Cc", "Cf"))


def trim(value: object) -> object:
    """Return a text without the spaces and the invisible characters around it, so that no two texts
    differ by them only. What is no text stays."""
    if not isinstance(value, str):
        return value
    # Two anchored matches: a search for the end would take quadratic time.
    text = value[_count_blank(value) :]
    return text[: len(text) - _count_blank(text[::-1])]


def _count_blank(text: str) -> int:
    match = _blank.match(text)
    return match.end() if match else 0


def check_line(text: str) -> str:
    """Return ``text``. Raises FieldError unless it is one line with a visible character."""
    return _check(text, _not_in_line)


def check_text(text: str) -> str:
    """Return ``text``. Raises FieldError unless it is plain text with a visible character."""
    return _check(text, _not_in_text)


def _check(text: str, forbidden: re.Pattern[str]) -> str:
    if match := forbidden.search(text):
        detail = f"U+{ord(match[0]):04X} at {match.start()} is a control character"
        raise FieldError("control-character", detail)
    if not any(unicodedata.category(char) not in _HAVE_NO_GLYPH for char in _visible.findall(text)):
        raise FieldError("too-short", "has no visible character")
    return text

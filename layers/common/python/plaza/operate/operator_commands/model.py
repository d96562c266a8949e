"""Why a command is refused, and what is hidden of a statement. No I/O."""

from __future__ import annotations

import re

from plaza.infra.runtime.errors import PlazaError

MAX_STATEMENT_CHARS = 500
_LITERAL = re.compile(
    r"""'(?:[^'\\]|\\.|'')*(?:'|$)|"(?:[^"\\]|\\.)*(?:"|$)|\b0x[0-9a-f]+\b|\b\d+\b""",
    re.IGNORECASE | re.DOTALL,
)


class Refused(PlazaError):
    """A command was not run: the text says why, without values of its arguments."""


def hide_literals(statement: str) -> str:
    """Return a statement with ``?`` for each literal, which may be a phone number or a hash of a
    token, and at most 500 characters of it."""
    return " ".join(_LITERAL.sub("?", statement).split())[:MAX_STATEMENT_CHARS]

"""Cursors of lists: opaque for clients, checked when they come back."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from plaza.infra.http.requests import MAX_ID
from plaza.infra.runtime.errors import BadInput


class BadCursor(BadInput):
    """A cursor was not returned by the list that it was sent to."""

    def __init__(self, detail: str = "was not returned by this API", name: str = "cursor") -> None:
        super().__init__(name, detail, code="invalid-cursor", path=f"query.{name}")


def pack_cursor(*parts: int | str) -> str:
    """Encode ``parts``, 63-bit integers and ASCII text, as an opaque cursor."""
    raw = json.dumps(parts, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def unpack_cursor(cursor: str, shape: tuple[type, ...], name: str = "cursor") -> list[Any]:
    """Decode the cursor in the parameter ``name``, whose parts have the types of ``shape``. Raises
    BadCursor."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        parts = json.loads(raw)
    except (binascii.Error, ValueError, RecursionError):
        raise BadCursor(name=name) from None
    fits = isinstance(parts, list) and [type(part) for part in parts] == list(shape)
    if not fits or not all(p.isascii() if type(p) is str else abs(p) <= MAX_ID for p in parts):
        raise BadCursor(name=name)
    return list(parts)

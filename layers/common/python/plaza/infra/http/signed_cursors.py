"""Signed cursors: valid for one query only, and refused if a client changed them.

They need the secret of the deployment; ordinary cursors (infra.http.cursors) do not.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from plaza.infra.http.cursors import BadCursor, pack_cursor, unpack_cursor
from plaza.infra.http.signatures import is_signed, sign


def pack_signed_cursor(query: str, *parts: int | str) -> str:
    """Encode ``parts`` as a cursor that is valid for ``query`` only. Raises SecretsDown."""
    return pack_cursor(*parts, sign("cursor", _signed_text(query, parts)))


def unpack_signed_cursor(cursor: str, query: str, shape: tuple[type, ...]) -> list[Any]:
    """Decode a cursor of ``query`` whose parts have the types of ``shape``.
    Raises BadCursor for any other cursor; SecretsDown."""
    *parts, signature = unpack_cursor(cursor, (*shape, str))
    if not is_signed("cursor", _signed_text(query, parts), signature):
        raise BadCursor("was not returned by this API for this query")
    return parts


def _signed_text(query: str, parts: Sequence[int | str]) -> str:
    return json.dumps([query, *parts])

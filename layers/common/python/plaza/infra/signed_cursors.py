"""Cursors that are good for one query only: what a client changed in one is refused.

Apart from the other cursors: a signature takes the secret of the deployment.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from plaza.infra.errors import BadInput
from plaza.infra.http import pack_cursor, unpack_cursor
from plaza.infra.signatures import is_signed, sign


def pack_signed_cursor(query: str, *parts: int | str) -> str:
    """Returns a cursor over ``parts`` that is good for ``query`` only. Raises SecretsDown."""
    return pack_cursor(*parts, sign("cursor", _signed_text(query, parts)))


def unpack_signed_cursor(cursor: str, query: str, shape: tuple[type, ...]) -> list[Any]:
    """Returns the parts of ``cursor``, which was given for ``query``.

    Raises BadInput for one that was not; SecretsDown.
    """
    *parts, signature = unpack_cursor(cursor, (*shape, str))
    if not is_signed("cursor", _signed_text(query, parts), signature):
        raise BadInput("cursor", "is not one that we gave for this query")
    return parts


def _signed_text(query: str, parts: Sequence[int | str]) -> str:
    return json.dumps([query, *parts])

"""Parts of SQL that all stores need: lists of ids, rows, times; and statements in files.

What is rendered into a statement here is a number or a name of ours, never a text of a client: for
a thousand rows the driver's own escaping costs more than the database.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from plaza.infra.observability import REQUEST_ID

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US = timedelta(microseconds=1)
_COMMENT = re.compile(r"^\s*--.*\n", re.MULTILINE)


def render_ids(ids: Iterable[int]) -> str:
    """``1,2,3``, for an IN of ids; nothing for none, which is no SQL."""
    return ",".join(str(int(i)) for i in ids)


def render_ids_by_type(targets: Iterable[tuple[str, int]]) -> dict[str, str]:
    """The ids of the targets of each type, as ``render_ids`` renders them."""
    ids: dict[str, list[int]] = {}
    for target_type, target_id in targets:
        ids.setdefault(target_type, []).append(target_id)
    return {target_type: render_ids(of_type) for target_type, of_type in ids.items()}


def placeholders(count: int) -> str:
    """``%s, %s, %s``, for so many values that the driver escapes."""
    return ", ".join(["%s"] * count)


def concat_columns(*columns: str) -> str:
    """SQL that gives ``columns``, numbers or words that are never NULL, as one text to split.

    For a thousand rows: the driver takes several microseconds for each column.
    """
    return f"CONCAT_WS(' ', {', '.join(columns)})"


def render_request_id(request_id: str | None) -> str:
    """``request_id`` for a statement that is rendered; NULL for none, and for one that isn't sound,
    whoever let it through."""
    sound = request_id is not None and REQUEST_ID.fullmatch(request_id)
    return f"'{request_id}'" if sound else "NULL"


def to_us(at: datetime) -> int:
    """Microseconds since 1970 of a DATETIME(6), which is UTC and says nothing of it."""
    return (at.replace(tzinfo=UTC) - _EPOCH) // _US


def from_us(at_us: int) -> datetime:
    """The time that is so many microseconds after 1970; the driver writes it as UTC."""
    return _EPOCH + at_us * _US


@cache
def load_sql(path: Path) -> str:
    """The statement in the file ``path``, without its comments."""
    return _COMMENT.sub("", path.read_text()).strip()

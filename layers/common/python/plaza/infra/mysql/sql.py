"""Parts of SQL that all stores need: lists of ids, columns, times; and statements in files.

Only numbers and names from the code are rendered into a statement here, never text of a client: for
1,000 rows the driver's escaping costs more than the database.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from plaza.infra.runtime.observability import REQUEST_ID

_UNIX_START = datetime(1970, 1, 1, tzinfo=UTC)
_US = timedelta(microseconds=1)
_COMMENT = re.compile(r"^\s*--.*\n", re.MULTILINE)


def render_ids(ids: Iterable[int]) -> str:
    """Render ids as ``1,2,3`` for an IN; '' without ids, which is not valid SQL."""
    return ",".join(str(int(i)) for i in ids)


def render_ids_by_type(targets: Iterable[tuple[str, int]]) -> dict[str, str]:
    """Return type -> the ids of its targets, rendered by ``render_ids``."""
    ids: dict[str, list[int]] = {}
    for target_type, target_id in targets:
        ids.setdefault(target_type, []).append(target_id)
    return {target_type: render_ids(of_type) for target_type, of_type in ids.items()}


def placeholders(count: int) -> str:
    """Return ``%s, %s, %s`` for ``count`` values that the driver escapes."""
    return ", ".join(["%s"] * count)


def escape_like(text: str) -> str:
    """Escape ``text`` for a LIKE, so that its wildcards stand for themselves."""
    return re.sub(r"([\\%_])", r"\\\1", text)


def concat_columns(*columns: str) -> str:
    """Return SQL for one text of all ``columns``, which are numbers or words and never NULL.
    For many rows: the driver takes several microseconds per column."""
    return f"CONCAT_WS(' ', {', '.join(columns)})"


def concat_rows(*columns: str) -> str:
    """Return SQL for one text of all rows, for ``split_rows``. ``columns`` are numbers, never NULL.

    The driver takes several microseconds a row. Sessions of ``infra.mysql.mysql`` cut the text at 4
    MiB, 20,000 rows of ten columns: the caller reads fewer.
    """
    packed = ", ' ', ".join(columns)
    return f"GROUP_CONCAT({packed})"


def split_rows(text: str | None) -> list[list[int]]:
    """Return the rows in the text of ``concat_rows``, which is NULL without rows."""
    return [list(map(int, row.split(" "))) for row in text.split(",")] if text else []


def render_request_id(request_id: str | None) -> str:
    """Render a request id as an SQL literal; NULL for none and for a malformed one."""
    is_valid = request_id is not None and REQUEST_ID.fullmatch(request_id)
    return f"'{request_id}'" if is_valid else "NULL"


def to_us(at: datetime) -> int:
    """Convert a DATETIME(6), a naive time in UTC, to microseconds since 1970."""
    return (at.replace(tzinfo=UTC) - _UNIX_START) // _US


def from_us(at_us: int) -> datetime:
    """Convert microseconds since 1970 to a time in UTC."""
    return _UNIX_START + at_us * _US


@cache
def load_sql(path: Path) -> str:
    """Return the statement in the file ``path``, without its comments."""
    return _COMMENT.sub("", path.read_text()).strip()

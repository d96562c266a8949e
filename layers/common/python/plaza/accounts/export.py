"""Export what the tables store about a user, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from plaza.accounts import mysql_export
from plaza.accounts.model import ExportedRow, ExportPosition
from plaza.infra.runtime.codec import TEXT_LIST


def read_page(
    user_id: int, after: ExportPosition | None, limit: int
) -> tuple[list[ExportedRow], ExportPosition | None]:
    """Return up to ``limit`` rows past ``after``, and the position of the last, None at the end.

    One statement a section, and one more. Raises MysqlDown.
    """
    start = last = after or ExportPosition(0, 0, 0)
    exported: list[ExportedRow] = []
    for number, section in enumerate(mysql_export.SECTIONS):
        if number < start.section:
            continue
        keys = (start.key, start.second_key) if number == start.section else (0, 0)
        for key, second_key, *values in mysql_export.read(section, user_id, keys, limit + 1):
            if len(exported) == limit:
                return exported, last
            exported.append(ExportedRow(section.name, _to_fields(section.columns, values)))
            last = ExportPosition(number, key, second_key)
    return exported, None


def _to_fields(columns: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """Return column -> value as JSON has it; ids are texts."""
    fields: dict[str, Any] = {}
    for column, value in zip(columns, values, strict=True):
        match value:
            case datetime():
                fields[column] = value.replace(tzinfo=UTC).isoformat().replace("+00:00", "Z")
            case date():
                fields[column] = value.isoformat()
            case Decimal():
                fields[column] = int(value)
            case int() if column == "id" or column.endswith("_id"):
                fields[column] = str(value)
            case str() if column == "images":
                fields[column] = list(TEXT_LIST.decode(value))
            case _:
                fields[column] = value
    return fields

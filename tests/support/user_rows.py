"""Rows about users for each section of an export, with all that the table requires."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from plaza.infra.mysql import mysql
from plaza.infra.mysql.export_sections import Section

_numbers = itertools.count(1_000)
_CONDITION = re.compile(r"(\w+) (?:= '?(\w+)'?|IS (NULL|NOT NULL))")
_TIED = 3  # rows that differ in the last columns of their key only


class Column(NamedTuple):
    """A column as MySQL declares it."""

    name: str
    kind: str
    is_required: bool


def fill(section: Section, user_id: int, count: int) -> list[tuple[Any, ...]]:
    """Insert ``count`` rows of a section, one if the user is its key; return their keys in order.

    Keys have ties in all columns but the last.
    """
    columns = _read_columns(section.table)
    number = min(1, count) if [*section.order] == [section.user] else count
    rows = [dict(_fill_row(section, columns, user_id, i)) for i in range(number)]
    if not rows:
        return []
    names = [*rows[0]]
    values = ", ".join(["%s"] * len(names))
    statement = f"INSERT INTO {section.table} ({', '.join(names)}) VALUES ({values})"
    mysql.run_in_transaction(
        lambda cursor: cursor.executemany(statement, [tuple(row.values()) for row in rows])
    )
    return sorted(tuple(row[column] for column in section.order) for row in rows)


def _read_columns(table: str) -> list[Column]:
    rows = mysql.fetch_all(
        """
        SELECT COLUMN_NAME, DATA_TYPE, IS_NULLABLE = 'NO' AND COLUMN_DEFAULT IS NULL
               AND EXTRA NOT LIKE '%%auto_increment%%'
        FROM information_schema.COLUMNS
        WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = %s
        """,
        (table,),
    )
    return [Column(name, kind, bool(is_required)) for name, kind, is_required in rows]


def _fill_row(
    section: Section, columns: Sequence[Column], user_id: int, i: int
) -> Iterator[tuple[str, Any]]:
    fixed: dict[str, Any] = {section.user: user_id}
    for condition in section.conditions:
        name, value, state = _CONDITION.fullmatch(condition).groups()  # type: ignore[union-attr]
        if state != "NOT NULL":
            fixed[name] = value
    *tied, last = section.order
    step = dict.fromkeys([last], next(_numbers)) | {
        name: i // _TIED**power for power, name in enumerate(reversed(tied), 1)
    }
    for column in columns:
        if column.name in fixed:
            yield column.name, fixed[column.name]
        elif column.name in step:
            yield column.name, _value(column.kind, step[column.name])
        elif column.is_required or column.kind in ("varchar", "char"):
            yield column.name, _value(column.kind, next(_numbers))


def _value(kind: str, number: int) -> Any:
    match kind:
        case "varchar" | "char":
            return f"{number:06}"
        case "tinyint":
            return number % 2
        case "binary":
            return hashlib.sha256(b"%d" % number).digest()
        case "date":
            return date(2020, 1, 1) + timedelta(days=number)
        case "datetime":
            return datetime(2026, 1, 1) + timedelta(milliseconds=number)  # noqa: DTZ001 - UTC, as in MySQL
    return number

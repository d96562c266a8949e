"""Sections of an export: the rows of a table about one user, in the order of an index.

A context declares the sections of its tables in its module ``export``; ``accounts`` exports all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, NamedTuple

from plaza.infra.mysql import mysql

_PARSERS: Mapping[type, Callable[[str], Any]] = {
    int: int,
    str: str,
    bytes: bytes.fromhex,
    date: date.fromisoformat,
    datetime: datetime.fromisoformat,
}


class ExportedRow(NamedTuple):
    """A row about a user: the name of its section, its fields, and its key as texts."""

    section: str
    fields: dict[str, Any]
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Section:
    """The rows of ``table`` that meet ``conditions`` and have the user's id in the column ``user``.

    ``order``: the columns after these in ``index``, and in the primary key that InnoDB appends to
    it, with the types of their values: the unique key of a row of this section, in a cursor.
    ``decoders``: column -> function that returns the exported value of one that is not NULL.
    ``part``: name of the section in cursors, if another one has the same name.
    """

    name: str
    table: str
    user: str
    order: Mapping[str, type]
    columns: Sequence[str]
    conditions: Sequence[str] = ()
    index: str = "PRIMARY"
    decoders: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    part: str = ""

    @property
    def cursor_name(self) -> str:
        return self.part or self.name

    def parse_key(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return column -> value of a key. Raises ValueError if no row has such a key."""
        return {
            column: _PARSERS[kind](text)
            for (column, kind), text in zip(self.order.items(), texts, strict=True)
        }

    def render_select(self, has_key: bool) -> str:
        """Return the statement of a page, with the arguments of ``read``."""
        return self.render_arm(f"{self.table} FORCE INDEX ({self.index})", has_key)

    def render_arm(self, source: str, has_key: bool, conditions: Sequence[str] = ()) -> str:
        """Return the SELECT of a page from ``source``, of rows that meet ``conditions``, too."""
        conditions = [f"{self.user} = %(exported_user)s", *self.conditions, *conditions]
        if has_key:
            conditions.append(_render_after([*self.order]))
        return f"""
            SELECT {", ".join([*self.order, *self.columns])}
            FROM {source}
            WHERE {" AND ".join(conditions)}
            ORDER BY {", ".join(self.order)}
            LIMIT %(exported_rows)s
            """  # noqa: S608 - of the declarations alone

    def read(self, user_id: int, after: Sequence[str], limit: int) -> list[ExportedRow]:
        """Return up to ``limit`` rows past the key ``after``, the first ones if it is empty. One
        statement. Raises ValueError for another key, MysqlDown."""
        key = self.parse_key(after) if after else {}
        args = {**key, "exported_user": user_id, "exported_rows": limit}
        names = [column.rpartition(" ")[2] for column in self.columns]
        rows = mysql.fetch_all(self.render_select(bool(key)), args)
        size = len(self.order)
        return [
            ExportedRow(
                self.name,
                {n: self._encode(n, v) for n, v in zip(names, row[size:], strict=True)},
                tuple(map(_render_key, row[:size])),
            )
            for row in rows
        ]

    def _encode(self, column: str, value: Any) -> Any:
        """Return a value as JSON has it; ids are texts."""
        if value is not None and column in self.decoders:
            return self.decoders[column](value)
        match value:
            case datetime():
                return f"{value.isoformat(timespec='microseconds')}Z"
            case date():
                return value.isoformat()
            case int() if column == "id" or column.endswith("_id"):
                return str(value)
        return value


def _render_key(value: Any) -> str:
    match value:
        case bytes():
            return value.hex()
        case date():  # a datetime is one
            return value.isoformat()
    return str(value)


def _render_after(columns: Sequence[str]) -> str:
    """Return the condition of rows past a key, as a range that both servers can read an index by:
    they read all rows of the user for a comparison of tuples."""
    first, *others = columns
    if not others:
        return f"{first} > %({first})s"
    return f"{first} >= %({first})s AND ({first} > %({first})s OR {_render_after(others)})"

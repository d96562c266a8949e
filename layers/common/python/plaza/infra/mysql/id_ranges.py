"""Ranges of ids of which each table has a bounded number of rows, and how many rows follow an id.

Statements contain only names of Plaza's and integers, never text of a client.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime.codec import MAX_ID


class Source(NamedTuple):
    """A table of which one range of ids may contain at most ``max_rows``."""

    table: str
    index_name: str
    where: str
    column: str
    max_rows: int


def select_probes(sources: Sequence[Source], after_id: int) -> list[str]:
    """Return SELECTs of (source, next id, 0) and (source, first id over the limit, 1)."""
    arms = []
    for number, (table, index_name, where, column, max_rows) in enumerate(sources):
        rows = (
            f"FROM {table} FORCE INDEX ({index_name}) WHERE {where} AND {column} > {after_id:d}"
            f" ORDER BY {column} LIMIT 1"
        )
        arms += [
            f"(SELECT {number}, {column}, 0 {rows})",
            f"(SELECT {number}, {column}, 1 {rows} OFFSET {max_rows:d})",
        ]
    return arms


def read_end(probed: Iterable[Sequence[int]]) -> int:
    """Return the end of a range in which no source exceeds its limit, at least one id; ``MAX_ID``
    if nothing follows. ``probed``: rows of ``select_probes``."""
    first: dict[int, int] = {}
    over_limit: dict[int, int] = {}
    for source, subject_id, is_over_limit in probed:
        (over_limit if is_over_limit else first)[source] = subject_id
    return min((max(i - 1, first[source]) for source, i in over_limit.items()), default=MAX_ID)


def find_range_end(sources: Sequence[Source], after_id: int) -> int:
    """Return the last id of the range that follows an id, as ``read_end``. One statement. Raises
    MysqlDown."""
    return read_end(mysql.fetch_all(" UNION ALL ".join(select_probes(sources, after_id))))


def estimate_left(table: str, column: str, after_id: int) -> int:
    """Return about how many rows of ``table`` follow an id. One statement. Raises MysqlDown."""
    return estimate_rows(table, f"{column} > {after_id:d}")


def estimate_rows(table: str, where: str) -> int:
    """Return about how many rows of ``table`` match ``where``, by its index. One statement. Raises
    MysqlDown."""

    def explain(cursor: Cursor) -> int:
        cursor.execute(f"EXPLAIN SELECT 1 FROM {table} WHERE {where}")  # noqa: S608
        columns = [column[0] for column in cursor.description or ()]
        return sum(int(row[columns.index("rows")] or 0) for row in cursor.fetchall())

    return mysql.run_in_transaction(explain)

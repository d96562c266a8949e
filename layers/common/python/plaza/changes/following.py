"""Following the binlog: what somebody changed past the API, Redis is told.

The position is kept after what is before it was told, so each change is told at least once, whoever
dies. When MySQL has purged the log at the position, nobody knows what changed: Redis is told
everything anew, and it goes on from the end.
"""

from __future__ import annotations

from typing import NamedTuple

from plaza.changes import mysql_positions
from plaza.infra import binlog
from plaza.infra.binlog import Part, Position, PositionLost, RowChanged
from plaza.infra.clock import Deadline
from plaza.infra.observability import record
from plaza.shops import Changed, refreshing

MOST_S = 40
_NAME = "shops"
_TABLES = ("shop", "shop_type")


class Followed(NamedTuple):
    """How many rows had changed, and whether the position was lost."""

    rows: int
    lost: bool


def follow_changes(most_s: float = MOST_S) -> Followed:
    """Tell Redis what changed since the last time, for about ``most_s``.

    Safe to repeat. Raises MysqlDown, RedisDown, QueueDown, BinlogUnusable.
    """
    deadline = Deadline.in_s(most_s)
    end = binlog.find_end()
    since = mysql_positions.read(_NAME)
    rows, behind_s, lost = 0, 0.0, since is None
    if since is not None:
        try:
            rows, behind_s = _follow(since, deadline)
        except PositionLost as error:
            lost = True
            record("binlog_lost", {"binlogs_lost": 1}, detail=str(error))
    if lost:
        refreshing.refresh_everything()
        mysql_positions.keep(_NAME, end)
    metrics = {"rows_followed": rows, "binlog_lag_s": round(behind_s, 1)}
    record("binlog_followed", metrics, lost=lost)
    return Followed(rows, lost)


def _follow(since: Position, deadline: Deadline) -> tuple[int, float]:
    """(rows that changed, how old the last change that was told is: 0 when there is no more)."""
    rows, behind_s = 0, 0.0
    for part in binlog.follow(_TABLES, since, deadline):
        _tell(part)
        mysql_positions.keep(_NAME, part.end)
        rows += len(part.rows)
        behind_s = part.behind_s
    return rows, behind_s


def _tell(part: Part) -> None:
    if part.wiped:
        refreshing.refresh_everything()
    changed = [_changed(row) for row in part.rows if row.table == "shop"]
    types = any(row.table == "shop_type" for row in part.rows)
    if changed or types:
        refreshing.adopt(changed, types)


def _changed(row: RowChanged) -> Changed:
    known = row.after or row.before or {}
    return Changed(
        known["id"],
        row.before["ver"] if row.before else None,
        row.after["ver"] if row.after else None,
    )

"""Following the binlog: what somebody changed past the API, Redis is told.

The position is kept after what is before it was told, so each change is told at least once, whoever
dies. When MySQL has purged the log at the position, nobody knows what changed: Redis is told
everything anew, and it goes on from the end.
"""

from __future__ import annotations

from typing import NamedTuple

from plaza.changes import mysql_store
from plaza.infra import binlog
from plaza.infra.binlog import BinlogPosition, BinlogPositionLost, ChangeBatch, RowChange
from plaza.infra.clock import Deadline
from plaza.infra.observability import record
from plaza.shops import ShopChange, refresh

MAX_RUN_S = 40
_NAME = "shops"
_TABLES = ("shop", "shop_type")


class BinlogProgress(NamedTuple):
    """How many rows had changed, and whether the position was lost."""

    rows: int
    lost: bool


def follow_changes(max_s: float = MAX_RUN_S) -> BinlogProgress:
    """Tell Redis what changed since the last time, for about ``max_s``.

    Safe to repeat. Raises MysqlDown, RedisDown, QueueDown, BinlogUnusable.
    """
    deadline = Deadline.in_s(max_s)
    end = binlog.read_end()
    since = mysql_store.read(_NAME)
    rows, behind_s, lost = 0, 0.0, since is None
    if since is not None:
        try:
            rows, behind_s = _follow(since, deadline)
        except BinlogPositionLost as error:
            lost = True
            record("binlog_lost", {"binlogs_lost": 1}, detail=str(error))
    if lost:
        refresh.request_full_refresh()
        mysql_store.save(_NAME, end)
    metrics = {"rows_followed": rows, "binlog_lag_s": round(behind_s, 1)}
    record("binlog_followed", metrics, lost=lost)
    return BinlogProgress(rows, lost)


def _follow(since: BinlogPosition, deadline: Deadline) -> tuple[int, float]:
    """(rows that changed, how old the last change that was told is: 0 when there is no more)."""
    rows, behind_s = 0, 0.0
    for part in binlog.read_changes(_TABLES, since, deadline):
        _project(part)
        mysql_store.save(_NAME, part.end)
        rows += len(part.rows)
        behind_s = part.lag_s
    return rows, behind_s


def _project(part: ChangeBatch) -> None:
    if part.invalidated_tables:
        refresh.request_full_refresh()
    changed = [_to_shop_change(row) for row in part.rows if row.table == "shop"]
    types = any(row.table == "shop_type" for row in part.rows)
    if changed or types:
        refresh.project_changes(changed, types)


def _to_shop_change(row: RowChange) -> ShopChange:
    known = row.after or row.before or {}
    return ShopChange(
        known["id"],
        row.before["version"] if row.before else None,
        row.after["version"] if row.after else None,
    )

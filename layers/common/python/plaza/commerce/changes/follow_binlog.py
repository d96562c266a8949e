"""Project changes that bypass the API from the binlog to Redis, at least once each.

The offset is saved after the changes before it are projected. When MySQL has purged the log at
the offset, a full refresh is requested and reading continues at the end of the log.
"""

from __future__ import annotations

from typing import NamedTuple

from plaza.commerce.changes import mysql_store
from plaza.commerce.changes.settings import change_settings
from plaza.commerce.shops import ShopChange, refresh
from plaza.infra.mysql import binlog
from plaza.infra.mysql.binlog import BinlogOffset, BinlogOffsetLost, ChangeBatch, RowChange
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import record

MAX_RUN_S = 40
_NAME = "shops"
_TABLES = ("shop", "shop_type")


class BinlogProgress(NamedTuple):
    """Number of changed rows, whether the offset was lost, and the age of the last row in
    seconds, 0 at the end of the log."""

    rows: int
    lost: bool
    lag_s: float = 0.0


def run_follower() -> BinlogProgress | None:
    """Follow the changes; return None in a deployment without a binlog (``PLAZA_BINLOG``).
    Raises what ``follow_changes`` raises."""
    return follow_changes() if change_settings().follows_binlog else None


def follow_changes(max_s: float = MAX_RUN_S) -> BinlogProgress:
    """Project the changes since the saved offset, for about ``max_s`` seconds. Safe to repeat.
    Raises MysqlDown, RedisDown, QueueDown, BinlogUnusable."""
    deadline = Deadline.in_s(max_s)
    end = binlog.read_end()
    since = mysql_store.read(_NAME)
    rows, lag_s, lost = 0, 0.0, since is None
    if since is not None:
        try:
            rows, lag_s = _follow(since, deadline)
        except BinlogOffsetLost as error:
            lost = True
            record("binlog_lost", {"binlogs_lost": 1}, detail=str(error))
    if lost:
        refresh.request_full_refresh()
        mysql_store.save(_NAME, end)
    progress = BinlogProgress(rows, lost, round(lag_s, 1))
    metrics = {"rows_followed": rows, "binlog_lag_s": progress.lag_s}
    record("binlog_followed", metrics, lost=lost)
    return progress


def _follow(since: BinlogOffset, deadline: Deadline) -> tuple[int, float]:
    """Return the number of changed rows and the age in seconds of the last (0: none is left)."""
    rows, lag_s = 0, 0.0
    for batch in binlog.read_changes(_TABLES, since, deadline):
        _project(batch)
        mysql_store.save(_NAME, batch.end)
        rows += len(batch.rows)
        lag_s = batch.lag_s
    return rows, lag_s


def _project(batch: ChangeBatch) -> None:
    if batch.invalidated_tables:
        refresh.request_full_refresh()
    changes = [_to_shop_change(row) for row in batch.rows if row.table == "shop"]
    types_changed = any(row.table == "shop_type" for row in batch.rows)
    if changes or types_changed:
        refresh.project_changes(changes, types_changed)


def _to_shop_change(row: RowChange) -> ShopChange:
    columns = row.after or row.before or {}
    return ShopChange(
        columns["id"],
        row.before["version"] if row.before else None,
        row.after["version"] if row.after else None,
    )

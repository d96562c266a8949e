"""Archive the events of closed days in S3, and delete them from MySQL.

A run may stop at any point, be repeated, or overlap with another: an object is written and read
back before its rows are deleted, and a row never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta

from plaza.core.event_log import mysql_events, s3_archive
from plaza.core.event_log.model import DAYS_KEPT, LogRow
from plaza.core.event_log.s3_archive import ArchiveCorrupt
from plaza.infra.mysql import sql
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import record

MAX_RUN_S = 60.0
EVENTS_PER_OBJECT = 20_000
_ROWS_PER_DELETE = 1_000


def run_archive(_: Mapping[str, object]) -> dict[str, int]:
    """Archive events in a run of MaintainLog; return their number. Raises as ``archive_events``."""
    return {"events_archived": archive_events()}


def archive_events(today: date | None = None) -> int:
    """Archive events that are older than eight days; return how many. Stops after a minute. Raises
    MysqlDown, ObjectsDown."""
    today = today or clock.today()
    before = datetime.combine(today - timedelta(days=DAYS_KEPT), time(), UTC)
    deadline, archived, corrupt = Deadline.in_s(MAX_RUN_S), 0, 0
    while not deadline.has_passed:
        rows = mysql_events.read_before(before, EVENTS_PER_OBJECT)
        if not rows:
            break
        day = _day_of(rows[0])
        of_day = [row for row in rows if _day_of(row) == day]
        try:
            s3_archive.put(day, of_day)
        except ArchiveCorrupt as error:  # the rows stay; the next run writes them again
            corrupt += 1
            record("archive_corrupt", day=day.isoformat(), what=str(error))
            break
        for start in range(0, len(of_day), _ROWS_PER_DELETE):
            mysql_events.delete([row.seq for row in of_day[start : start + _ROWS_PER_DELETE]])
        archived += len(of_day)
    record("events_archived", {"events_archived": archived, "archives_corrupt": corrupt})
    return archived


def _day_of(row: LogRow) -> date:
    return sql.from_us(row.at_us).date()

"""The roll-up: add new events of the reaction log to likes of reviews and hourly likes of posts."""

from __future__ import annotations

from plaza.core.reactions import reaction_log
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import record
from plaza.social.recommendations import mysql_roll_up

ROWS_PER_PAGE = 50_000
MAX_RUN_S = 60
RETENTION_HOURS = 8 * 24  # a day more than the longest window
_ROWS_PER_DELETE = 10_000


def roll_up_likes() -> int:
    """Roll up the events above the watermark; return the new watermark. Stops after 60 s.

    Each page is one transaction that also moves the watermark, so that an interrupted run neither
    skips nor repeats events. Raises MysqlDown.
    """
    deadline = Deadline.in_s(MAX_RUN_S)
    first_hour = clock.now_us() // mysql_roll_up.HOUR_US - RETENTION_HOURS
    head = reaction_log.read_log_head()
    reaction_log.wait_for_log_writers()
    rolled_up = mysql_roll_up.roll_up_page(head, ROWS_PER_PAGE, first_hour)
    total = rolled_up.end - rolled_up.begin
    while rolled_up.end < head and not deadline.has_passed:
        rolled_up = mysql_roll_up.roll_up_page(head, ROWS_PER_PAGE, first_hour)
        total += rolled_up.end - rolled_up.begin
    deleted = _delete_hours(first_hour, deadline)
    behind = max(head - rolled_up.end, 0)
    record("likes_rolled_up", {"rolled_up": total, "likes_behind": behind}, hours_deleted=deleted)
    return rolled_up.end


def _delete_hours(first_hour: int, deadline: Deadline) -> int:
    total = 0
    while not deadline.has_passed:
        deleted = mysql_roll_up.delete_hours(first_hour, _ROWS_PER_DELETE)
        total += deleted
        if deleted < _ROWS_PER_DELETE:
            break
    return total

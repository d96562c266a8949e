"""Rolling up: what the log says since the last time becomes votes of reviews and hours of posts."""

from __future__ import annotations

from plaza.infra import clock
from plaza.infra.clock import Deadline
from plaza.infra.observability import record
from plaza.reactions import reaction_log
from plaza.recommendations import mysql_votes
from plaza.recommendations.mysql_votes import sync_review_votes

__all__ = ["MAX_RUN_S", "RETENTION_HOURS", "ROWS_PER_PAGE", "roll_up_votes", "sync_review_votes"]

ROWS_PER_PAGE = 50_000
MAX_RUN_S = 60
RETENTION_HOURS = 8 * 24  # a day more than the longest window
_ROWS_PER_DELETE = 10_000


def roll_up_votes() -> int:
    """Roll up what was logged since the last time; how far in the log that is now.

    Each page is a transaction that moves the watermark along: nothing is skipped and nothing is
    done twice, wherever this ends. It stops after 60 s, what is left is for the next run.
    Raises MysqlDown.
    """
    deadline = Deadline.in_s(MAX_RUN_S)
    first_hour = clock.now_us() // mysql_votes.HOUR_US - RETENTION_HOURS
    head = reaction_log.read_log_head()
    reaction_log.wait_for_log_writers()
    rolled_up = mysql_votes.roll_up_page(head, ROWS_PER_PAGE, first_hour)
    done = rolled_up.end - rolled_up.begin
    while rolled_up.end < head and not deadline.has_passed:
        rolled_up = mysql_votes.roll_up_page(head, ROWS_PER_PAGE, first_hour)
        done += rolled_up.end - rolled_up.begin
    deleted = _delete_hours(first_hour, deadline)
    behind = max(head - rolled_up.end, 0)
    record("votes_rolled_up", {"rolled_up": done, "votes_behind": behind}, hours_deleted=deleted)
    return rolled_up.end


def _delete_hours(first_hour: int, deadline: Deadline) -> int:
    deleted = 0
    while not deadline.has_passed:
        found = mysql_votes.delete_hours(first_hour, _ROWS_PER_DELETE)
        deleted += found
        if found < _ROWS_PER_DELETE:
            break
    return deleted

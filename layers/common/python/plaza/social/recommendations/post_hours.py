"""Compare the hourly likes of posts with the reaction log that they are rolled up from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from plaza.infra.runtime import clock
from plaza.social.recommendations import mysql_hours
from plaza.social.recommendations.mysql_hours import WrongHour

__all__ = ["DAYS", "WrongHour", "compare", "correct", "day_of", "find_range_end"]

DAYS = 8
"""Days whose hours are compared, today included: the log has all of them."""

find_range_end = mysql_hours.find_range_end
compare = mysql_hours.find_wrong


def day_of(number: int) -> date:
    """Return the day that is compared as number 0 to ``DAYS`` - 1: yesterday, whose hours change
    the least and are the newest of them, then today, then the days before."""
    age = {0: 1, 1: 0}.get(number, number)
    return datetime.fromtimestamp(clock.now_s(), UTC).date() - timedelta(days=age)


def correct(post_ids: Sequence[int]) -> int:
    """Correct the hours of posts from the log; return how many were wrong. One transaction of three
    statements and one for each day; the roll-up waits for it. Raises MysqlDown."""
    return mysql_hours.correct([day_of(number) for number in range(DAYS)], sorted(post_ids))

"""Check-ins in MySQL, the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from plaza.commerce.checkins.model import CheckInEvent, DayRange, StoredCheckIns, next_month
from plaza.infra.mysql import mysql, sql

# Each day of an outbox joins two ranges at most: enough unless it has as many days.
MAX_RANGES = 40

# Days are numbered from the newest: day + number is the same for all days of a range.
_READ = """
SELECT part, first, last FROM (
  SELECT 'range' AS part, MIN(day) AS first, MAX(day) AS last FROM (
    SELECT day, TO_DAYS(day) + ROW_NUMBER() OVER (ORDER BY day DESC) AS range_id
    FROM checkin WHERE user_id = %s
  ) AS numbered GROUP BY range_id ORDER BY last DESC LIMIT %s
) AS ranges
UNION ALL
SELECT 'day', day, day FROM checkin WHERE user_id = %s AND day >= %s AND day < %s
"""

REMAINS = "EXISTS (SELECT 1 FROM checkin WHERE user_id = {user_id})"
"""Whether an erased user has rows again."""


def insert(events: Sequence[CheckInEvent]) -> int:
    """Insert missing days; return how many. One statement. Raises MysqlDown."""
    ordered = sorted({(event.user_id, event.day): event for event in events}.items())
    rows = ", ".join(
        f"({user_id}, '{day}', {event.version_us}, {sql.render_request_id(event.request_id)})"
        for (user_id, day), event in ordered
    )
    # With INSERT IGNORE two transactions that wait for a third deadlock if it rolls back.
    statement = f"""
        INSERT INTO checkin (user_id, day, version, request_id)
        VALUES {rows}
        ON DUPLICATE KEY UPDATE version = checkin.version
        """
    return mysql.run_in_transaction(lambda cursor: cursor.execute(statement))


def read(user_id: int, first: date) -> StoredCheckIns:
    """Return the newest ranges and the month of ``first``. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all(_READ, (user_id, MAX_RANGES, user_id, first, next_month(first)))
    ranges = sorted((DayRange(a, b) for part, a, b in rows if part == "range"), reverse=True)
    return StoredCheckIns(ranges, sorted(day for part, day, _ in rows if part == "day"))


def read_days(user_id: int) -> list[date]:
    """Return all days of a user. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all("SELECT day FROM checkin WHERE user_id = %s", (user_id,))
    return [day for (day,) in rows]


def read_days_from(begins: Mapping[int, date]) -> dict[int, set[date]]:
    """Return user -> days from a day on. One statement. Raises MysqlDown."""
    arms = [
        f"SELECT user_id, day FROM checkin WHERE user_id = {user_id:d} AND day >= '{first}'"
        for user_id, first in begins.items()
    ]
    days: dict[int, set[date]] = {user_id: set() for user_id in begins}
    for user_id, day in mysql.fetch_all(" UNION ALL ".join(arms)) if arms else ():
        days[user_id].add(day)
    return days


def delete(user_id: int) -> int:
    """Delete all days of a user; return how many. One statement. Raises MysqlDown."""
    return mysql.write("DELETE FROM checkin WHERE user_id = %s", (user_id,))

"""Samples of gauges in MySQL. Each function runs one statement and raises MysqlDown."""

from __future__ import annotations

from plaza.infra.mysql import mysql


def store(minute: int, gauges: str) -> None:
    """Store the JSON of a minute's gauges; a second sample of the minute replaces the first."""
    mysql.write(
        """
        INSERT INTO gauge_sample (minute, gauges)
        VALUES (%s, %s)
        ON DUPLICATE KEY UPDATE gauges = VALUES(gauges)
        """,
        (minute, gauges),
    )


def read(first_minute: int) -> list[tuple[int, str]]:
    """Return (minute, JSON) of the samples from a minute on."""
    rows = mysql.fetch_all(
        "SELECT minute, gauges FROM gauge_sample WHERE minute >= %s ORDER BY minute",
        (first_minute,),
    )
    return [(minute, gauges) for minute, gauges in rows]


def delete_before(minute: int, limit: int) -> int:
    """Delete up to ``limit`` samples before a minute, oldest first; return how many."""
    return mysql.write(
        "DELETE FROM gauge_sample WHERE minute < %s ORDER BY minute LIMIT %s", (minute, limit)
    )

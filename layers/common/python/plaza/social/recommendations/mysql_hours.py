"""Hourly likes of posts in MySQL beside the reaction log that they are rolled up from.

A statement reads both, and the cursor of the roll-up, in one snapshot. So a difference is none
that a roll-up in progress explains.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple

from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime.codec import MAX_ID
from plaza.social.recommendations.mysql_roll_up import HOUR_US, lock_watermark, select_watermark

MAX_EVENTS = 50_000  # of a range; one post may have more


class WrongHour(NamedTuple):
    """An hour of a post, its stored likes minus unlikes, and their sum in the log."""

    hour: int
    post_id: int
    net: int
    counted: int


def find_range_end(day: date, after_id: int) -> int:
    """Return the last post of a range of a day of the log that has about ``MAX_EVENTS`` events of
    posts, ``MAX_ID`` if no event follows. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all(
        f"""
        SELECT target_id
        FROM reaction_log FORCE INDEX (PRIMARY)
        WHERE create_date = %s
          AND target_type = 'post'
          AND target_id > %s
        ORDER BY target_id LIMIT {MAX_EVENTS:d}, 1
        """,
        (day, after_id),
    )
    return int(rows[0][0]) if rows else MAX_ID


def find_wrong(day: date, after_id: int, last_id: int) -> list[WrongHour]:
    """Return the hours of a day that differ from the log, of posts above ``after_id`` up to
    ``last_id``. One statement. Raises MysqlDown."""
    within = f"{{post}} > {after_id:d} AND {{post}} <= {last_id:d}"
    return [_read(row) for row in mysql.fetch_all(_select_wrong(day, within))]


def correct(days: Sequence[date], post_ids: Sequence[int]) -> int:
    """Correct the hours of posts from the log; return how many were wrong. One transaction of
    three statements and one for each day. Raises MysqlDown."""

    def work(cursor: Cursor) -> int:
        lock_watermark(cursor)
        wrong: list[WrongHour] = []
        for day in days:
            cursor.execute(_select_wrong(day, f"{{post}} IN ({sql.render_ids(post_ids)})"))
            wrong += map(_read, cursor.fetchall())
        right = sorted((each.hour, each.post_id, each.counted) for each in wrong)
        cursor.executemany(
            """
            INSERT INTO post_hour (hour, post_id, net)
            VALUES (%s, %s, %s)
            ON DUPLICATE KEY UPDATE net = VALUES(net)
            """,
            right,
        )
        return len(wrong)

    return mysql.run_in_transaction(work) if post_ids else 0


def _select_wrong(day: date, posts: str) -> str:
    """Return the statement that compares posts: an SQL condition with ``{post}`` for the column."""
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
    first = int(begin.timestamp()) // 3_600
    # A list of hours, because a range of them would read each post of these hours.
    hours = sql.render_ids(range(first, first + 24))
    return f"""
        SELECT hour, post_id, SUM(net), SUM(counted)
        FROM (
            SELECT hour, post_id, net, 0 AS counted
            FROM post_hour FORCE INDEX (PRIMARY)
            WHERE hour IN ({hours})
              AND {posts.format(post="post_id")}
            UNION ALL
            SELECT version DIV {HOUR_US:d}, target_id, 0, change_by
            FROM reaction_log FORCE INDEX (PRIMARY)
            WHERE create_date = '{day:%Y-%m-%d}'
              AND target_type = 'post'
              AND {posts.format(post="target_id")}
              AND kind = 'like'
              AND seq <= {select_watermark()}
        ) AS of_both
        GROUP BY hour, post_id
        HAVING SUM(net) <> SUM(counted)
        ORDER BY post_id, hour
        """


def _read(row: Sequence[int]) -> WrongHour:
    return WrongHour(*map(int, row))

"""Roll up the reaction log into likes of reviews and hourly likes of posts.

``reaction_log.seq`` is the order of insertion, not of commits: an uncommitted row may have a lower
seq than a committed one. The log barrier excludes such rows
(docs/decisions/0022-read-the-log-behind-a-barrier.md).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from plaza.core.reactions.reaction_log import find_log_page_end
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor

HOUR_US = 3_600_000_000
_NAME = "likes"
_SQL = Path(__file__).with_name("sql")
_ROLL_UP_REVIEW_LIKES = sql.load_sql(_SQL / "roll_up_review_likes.sql")
_MARK_LISTS_STALE = sql.load_sql(_SQL / "mark_lists_stale.sql")
_ROLL_UP_POST_HOURS = sql.load_sql(_SQL / "roll_up_post_hours.sql")


class RolledUpRange(NamedTuple):
    """A page of the log that was rolled up: seqs above ``begin`` up to ``end``, inclusive."""

    begin: int
    end: int


def roll_up_page(head: int, size: int, first_hour: int) -> RolledUpRange:
    """Roll up at most ``size`` events above the watermark and up to ``head``.

    One transaction of three packets. Concurrent calls are serialized by the watermark's
    lock, and each continues after the other. Hours before ``first_hour`` are skipped. Raises
    MysqlDown.
    """
    return mysql.run_in_transaction(lambda cursor: _roll_up_page(cursor, head, size, first_hour))


def _roll_up_page(cursor: Cursor, head: int, size: int, first_hour: int) -> RolledUpRange:
    begin = lock_watermark(cursor)
    if head <= begin:
        return RolledUpRange(begin, begin)
    end = find_log_page_end(cursor, begin, head, size)
    page = {"begin": begin, "end": end}
    mysql.send(cursor, _ROLL_UP_REVIEW_LIKES, page)
    mysql.send(cursor, _MARK_LISTS_STALE, page)
    hours = page | {"hour_us": HOUR_US, "first_hour": first_hour}
    mysql.send(cursor, _ROLL_UP_POST_HOURS, hours)
    mysql.send(cursor, "UPDATE watermark SET seq = %s WHERE name = %s", (end, _NAME))
    return RolledUpRange(begin, end)


def select_watermark() -> str:
    """Return SQL for the watermark, 0 before the first roll-up."""
    return f"COALESCE((SELECT seq FROM watermark WHERE name = '{_NAME}'), 0)"


def lock_watermark(cursor: Cursor) -> int:
    """Return the watermark, locked until the commit: no page is rolled up meanwhile. Two
    statements."""
    mysql.send(
        cursor,
        """
        INSERT INTO watermark (name, seq)
        VALUES (%s, 0)
        ON DUPLICATE KEY UPDATE seq = watermark.seq
        """,
        (_NAME,),
    )
    cursor.execute("SELECT seq FROM watermark WHERE name = %s FOR UPDATE", (_NAME,))
    [(seq,)] = cursor.fetchall()
    return int(seq)


def sync_review_likes(review_ids: list[int]) -> None:
    """Copy corrected counters to the likes of reviews, and mark the lists of their shops as stale.
    One transaction of two statements. Raises MysqlDown."""
    numbers = sql.render_ids(review_ids)

    def work(cursor: Cursor) -> None:
        # INSERT rather than UPDATE, as in the roll-up: it does not lock the rows that it reads.
        cursor.execute(
            f"""
            INSERT INTO content (content_type, content_id, author_id, likes)
            SELECT c.content_type, c.content_id, c.author_id, COALESCE(k.total, 0)
            FROM content AS c
            LEFT JOIN counter AS k ON k.target_type = 'review'
                AND k.target_id = c.content_id
                AND k.kind = 'like'
            WHERE c.content_type = 'review'
              AND c.content_id IN ({numbers})
              AND c.likes <> COALESCE(k.total, 0)
            ORDER BY c.content_id
            ON DUPLICATE KEY UPDATE likes = VALUES(likes)
            """
        )
        cursor.execute(
            f"""
            INSERT INTO stale_list (shop_id, seq)
            SELECT DISTINCT c.parent_id,
                   {select_watermark()}
            FROM content AS c
            WHERE c.content_type = 'review'
              AND c.content_id IN ({numbers})
              AND c.parent_id IS NOT NULL
            ORDER BY c.parent_id
            ON DUPLICATE KEY UPDATE seq = GREATEST(stale_list.seq, VALUES(seq))
            """
        )

    if review_ids:
        mysql.run_in_transaction(work)


def compare_review_likes(after_id: int, last_id: int) -> tuple[int, dict[int, tuple[int, int]]]:
    """Return the number of reviews in a range of ids, and review -> (copied, likes) of those where
    both differ, although the roll-up has read all their events. One statement. Raises MysqlDown."""
    within = f"content_type = 'review' AND content_id BETWEEN {after_id + 1:d} AND {last_id:d}"
    [(_, count, _), *rows] = mysql.fetch_all(
        f"""
        SELECT 0 AS review, COUNT(*), 0
        FROM content FORCE INDEX (PRIMARY)
        WHERE {within}
        UNION ALL
        SELECT c.content_id, c.likes, COALESCE(k.total, 0)
        FROM content AS c FORCE INDEX (PRIMARY)
        LEFT JOIN counter AS k ON k.target_type = 'review'
            AND k.target_id = c.content_id
            AND k.kind = 'like'
        WHERE {within}
          AND c.likes <> COALESCE(k.total, 0)
          AND NOT EXISTS (
              SELECT 1
              FROM reaction_log AS l FORCE INDEX (PRIMARY)
              WHERE l.target_type = 'review'
                AND l.target_id = c.content_id
                AND l.kind = 'like'
                AND l.seq > {select_watermark()}
          )
        ORDER BY review
        """
    )
    return int(count), {review_id: (int(copied), int(likes)) for review_id, copied, likes in rows}


def delete_hours(first_hour: int, limit: int) -> int:
    """Delete up to ``limit`` rows before ``first_hour``; return their number. Raises MysqlDown."""
    return mysql.write(f"DELETE FROM post_hour WHERE hour < %s LIMIT {limit:d}", (first_hour,))

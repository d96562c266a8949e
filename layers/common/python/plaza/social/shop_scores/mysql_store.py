"""Counters of shops in MySQL: how many reviews each has, and the sum of their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.social.shop_scores.model import ShopCounter

_ROWS = """
    SELECT {shop_id:d}, COUNT(*), COALESCE(SUM(score), 0)
    FROM content FORCE INDEX (by_parent)
    WHERE content_type = 'review'
      AND parent_id = {shop_id:d}
      AND deleted_at IS NULL
"""


def add(cursor: Cursor, shop_id: int, change: ShopCounter) -> None:
    """Add a change to the counter of a shop, in the transaction of the review. One statement; one
    more for the first review since the table exists, which counts all rows: the new one, too."""
    values = (*change, shop_id)
    changed = cursor.execute(
        """
        UPDATE shop_counter
        SET reviews_total = reviews_total + %s, score_total = score_total + %s
        WHERE shop_id = %s
        """,
        values,
    )
    if not changed:
        # A counter that another transaction has created meanwhile did not count this review.
        cursor.execute(
            f"""
            INSERT INTO shop_counter (shop_id, reviews_total, score_total)
            {_ROWS.format(shop_id=shop_id)}
            ON DUPLICATE KEY UPDATE reviews_total = reviews_total + %s,
                score_total = score_total + %s
            """,
            change,
        )


def correct(cursor: Cursor, shop_ids: Sequence[int]) -> int:
    """Set the counters of these shops to what their rows are, under their locks; return how many
    were wrong. At most three statements."""
    numbers = sql.render_ids(sorted(shop_ids))
    cursor.execute(
        f"""
        SELECT shop_id, reviews_total, score_total
        FROM shop_counter
        WHERE shop_id IN ({numbers})
        ORDER BY shop_id FOR UPDATE
        """
    )
    stored = {shop_id: ShopCounter(*map(int, totals)) for shop_id, *totals in cursor.fetchall()}
    if not stored:
        return 0
    cursor.execute(" UNION ALL ".join(_ROWS.format(shop_id=shop_id) for shop_id in stored))
    counted = {shop_id: ShopCounter(*map(int, totals)) for shop_id, *totals in cursor.fetchall()}
    wrong = {shop_id: counted[shop_id] for shop_id in stored if counted[shop_id] != stored[shop_id]}
    if wrong:
        _store(cursor, wrong)
    return len(wrong)


def load(shop_id: int) -> ShopCounter:
    """Return the counter of a shop; create it if it is missing. At most three statements. Raises
    MysqlDown."""
    select = "SELECT reviews_total, score_total FROM shop_counter WHERE shop_id = %s"
    rows = mysql.fetch_all(select, (shop_id,))
    if not rows:
        mysql.write(
            f"""
            INSERT INTO shop_counter (shop_id, reviews_total, score_total)
            {_ROWS.format(shop_id=shop_id)}
            ON DUPLICATE KEY UPDATE shop_id = shop_counter.shop_id
            """
        )
        rows = mysql.fetch_all(select, (shop_id,))
    [totals] = rows
    return ShopCounter(*map(int, totals))


def _store(cursor: Cursor, counters: Mapping[int, ShopCounter]) -> None:
    rows = ",".join(
        f"({shop_id:d},{sql.render_ids(counter)})" for shop_id, counter in counters.items()
    )
    cursor.execute(
        f"""
        INSERT INTO shop_counter (shop_id, reviews_total, score_total)
        VALUES {rows}
        ON DUPLICATE KEY UPDATE reviews_total = VALUES(reviews_total),
            score_total = VALUES(score_total)
        """
    )

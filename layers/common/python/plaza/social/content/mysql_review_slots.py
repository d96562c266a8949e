"""Slots of reviews beside the reviews: each review that is not deleted has one, unless another
review of its author has it; no deleted review has any."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.infra.mysql import mysql, sql

_LEFT_OVER = """
    FROM review_slot AS s FORCE INDEX (by_review)
    LEFT JOIN content AS c FORCE INDEX (PRIMARY)
        ON  c.content_type = 'review'
        AND c.content_id = s.review_id
        AND c.deleted_at IS NULL
    WHERE c.content_id IS NULL
    """
_MISSING = """
    FROM content AS c FORCE INDEX (PRIMARY)
    LEFT JOIN review_slot AS s FORCE INDEX (PRIMARY)
        ON  s.shop_id = c.parent_id
        AND s.author_id = c.author_id
        AND s.order_id = COALESCE(c.order_id, 0)
    WHERE c.content_type = 'review'
      AND c.deleted_at IS NULL
      AND c.parent_id IS NOT NULL
      AND s.review_id IS NULL
    """


def find_wrong(after_id: int, until_id: int) -> dict[int, str]:
    """Return review -> what is wrong with its slot, of a range of reviews. One statement. Raises
    MysqlDown."""
    within = "> {0:d} AND {1} <= {2:d}"
    rows = mysql.fetch_all(
        f"""
        SELECT s.review_id, 'left over'
        {_LEFT_OVER} AND s.review_id {within.format(after_id, "s.review_id", until_id)}
        UNION ALL
        SELECT c.content_id, 'missing'
        {_MISSING} AND c.content_id {within.format(after_id, "c.content_id", until_id)}
        """
    )
    return dict(rows)


def repair(review_ids: Sequence[int]) -> None:
    """Delete slots of these reviews that are left over, and add missing ones. Two statements.
    Raises MysqlDown."""
    if not review_ids:
        return
    numbers = sql.render_ids(review_ids)
    mysql.write(f"DELETE s {_LEFT_OVER} AND s.review_id IN ({numbers})")
    mysql.write(
        f"""
        INSERT IGNORE INTO review_slot (shop_id, author_id, order_id, review_id)
        SELECT c.parent_id, c.author_id, COALESCE(c.order_id, 0), c.content_id
        {_MISSING} AND c.content_id IN ({numbers})
        ORDER BY c.content_id
        """
    )

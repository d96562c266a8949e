"""Texts that counters count: of users and posts in the statements of core, of shops in one here."""

from __future__ import annotations

from pathlib import Path

from plaza.core.counters import COMMENT
from plaza.infra.derived.comparisons import CountedRows, RangeCounts
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.id_ranges import Source, estimate_rows, find_range_end

SHOP_TOTALS = ("reviews", "scores")
_MAX_REVIEWS = 50_000
_MAX_SHOPS = 2_000
_MAX_COMPARED = 10_000  # reviews of a range

COUNTED = CountedRows(
    of_users=sql.load_sql(Path(__file__).with_name("sql") / "count_texts_of_users.sql"),
    of_targets={
        ("post", COMMENT): (
            f"""
            SELECT {{prefix}}'{COMMENT}', parent_id, COUNT(*)
            FROM content FORCE INDEX (by_parent)
            WHERE content_type = 'comment'
              AND parent_id {{within}}
              AND deleted_at IS NULL
            GROUP BY parent_id
            """,
            # The counter does not include these yet.
            f"""
            SELECT {{prefix}}'{COMMENT}', post_id, CAST(-SUM(delta) AS SIGNED)
            FROM delayed_comment_count
            WHERE post_id {{within}}
            GROUP BY post_id
            """,
        )
    },
    owners="""
        SELECT c.author_id
        FROM {changed}
        STRAIGHT_JOIN content AS c
            ON  c.content_type = changed.target_type
            AND c.content_id = changed.target_id
        """,
    user_ranges=tuple(
        ("content", "by_author", f"content_type = '{name}'", "author_id")
        for name in ("comment", "post", "review")
    ),
    target_ranges={"post": (("content", "by_parent", "content_type = 'comment'", "parent_id"),)},
)
"""What counters of users and posts count of texts."""


def find_shop_range_end(after_id: int) -> int:
    """Return the last id of the next range of shops: about 50,000 reviews, or one shop. One
    statement. Raises MysqlDown."""
    sources = [
        Source("shop_counter", "PRIMARY", "TRUE", "shop_id", _MAX_SHOPS),
        Source("content", "by_parent", "content_type = 'review'", "parent_id", _MAX_REVIEWS),
    ]
    return find_range_end(sources, after_id)


def find_review_range_end(after_id: int) -> int:
    """Return the last id of the next range of reviews. One statement. Raises MysqlDown."""
    of_type = "content_type = 'review'"
    return find_range_end(
        [Source("content", "PRIMARY", of_type, "content_id", _MAX_COMPARED)], after_id
    )


def estimate_reviews(after_id: int) -> int:
    """Return about how many reviews follow an id. One statement. Raises MysqlDown."""
    return estimate_rows("content", f"content_type = 'review' AND content_id > {after_id:d}")


def count_shops(after_id: int, last_id: int) -> RangeCounts:
    """Read the counters of a range of shops, and count their reviews. A shop without a counter is
    left out: its first reader counts. One statement. Raises MysqlDown."""
    within = f"BETWEEN {after_id + 1:d} AND {last_id:d}"
    rows = mysql.fetch_all(
        f"""
        SELECT k.shop_id, k.reviews_total, k.score_total, COALESCE(c.reviews, 0),
               COALESCE(c.score, 0)
        FROM shop_counter AS k
        LEFT JOIN (
            SELECT parent_id, COUNT(*) AS reviews, SUM(COALESCE(score, 0)) AS score
            FROM content FORCE INDEX (by_parent)
            WHERE content_type = 'review'
              AND parent_id {within}
              AND deleted_at IS NULL
            GROUP BY parent_id
        ) AS c ON c.parent_id = k.shop_id
        WHERE k.shop_id {within}
        """
    )
    counters: dict[tuple[int, str], int] = {}
    counted: dict[tuple[int, str], int] = {}
    for shop_id, *numbers in rows:
        stored, of_rows = map(int, numbers[:2]), map(int, numbers[2:])
        counters |= {(shop_id, w): n for w, n in zip(SHOP_TOTALS, stored, strict=True) if n}
        counted |= {(shop_id, w): n for w, n in zip(SHOP_TOTALS, of_rows, strict=True) if n}
    return RangeCounts(counters, counted, len(rows))

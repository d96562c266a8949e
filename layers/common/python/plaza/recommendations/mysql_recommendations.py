"""Recommended reviews in MySQL: reviews by votes, and the marks of stale lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plaza.infra import mysql
from plaza.recommendations.model import LIST_LENGTH, ReviewList


def read_best_reviews(shop_ids: Sequence[int]) -> dict[int, ReviewList]:
    """Return the best reviews of each of ``shop_ids``. One statement. Raises MysqlDown."""
    numbers = [str(int(shop_id)) for shop_id in shop_ids]
    arms = [
        f"(SELECT 'stale', shop_id, seq FROM stale_list WHERE shop_id IN ({','.join(numbers)}))",
    ]
    arms += [
        f"""
        (
            SELECT 'review', {number}, content_id
            FROM content FORCE INDEX (by_votes)
            WHERE content_type = 'review'
              AND parent_id = {number}
              AND deleted_at IS NULL
            ORDER BY votes DESC, content_id DESC LIMIT {LIST_LENGTH:d}
        )
        """
        for number in numbers
    ]
    stale: dict[int, int] = {}
    best: dict[int, list[int]] = {int(shop_id): [] for shop_id in shop_ids}
    for row_type, shop_id, number in mysql.fetch_all(" UNION ALL ".join(arms)):
        match row_type:
            case "stale":
                stale[shop_id] = number
            case "review":
                best[shop_id].append(number)
    return {s: ReviewList(ids, stale.get(s)) for s, ids in best.items()}


def find_stale_shops(after_id: int, limit: int) -> list[int]:
    """Return a page of the shops with stale lists, by id. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all(
        f"SELECT shop_id FROM stale_list WHERE shop_id > %s ORDER BY shop_id LIMIT {limit:d}",
        (after_id,),
    )
    return [shop_id for (shop_id,) in rows]


def clear_stale_marks(lists: Mapping[int, ReviewList]) -> None:
    """Delete marks not newer than the lists. At most one statement. Raises MysqlDown."""
    fresh = [
        f"(shop_id = {shop_id:d} AND seq <= {review_list.stale_seq:d})"
        for shop_id, review_list in sorted(lists.items())
        if review_list.stale_seq is not None
    ]
    if fresh:
        statement = f"DELETE FROM stale_list WHERE {' OR '.join(fresh)}"
        mysql.run_in_transaction(lambda cursor: cursor.execute(statement))

"""Recommended reviews in MySQL: reviews by their score, and the marks of stale lists.

The score is computed in integers, so that the order is the same in each client of MySQL
(docs/ranking.md has the statement).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from plaza.infra.mysql import mysql, sql
from plaza.social.recommendations.model import LIST_LENGTH, MAX_POINTS, ReviewList, ScoreComponent
from plaza.social.recommendations.settings import ranking_settings

MAX_PER_AUTHOR = 2  # reviews in a list
MAX_CANDIDATES = 500  # most liked reviews of a shop that are scored, and as many newest ones


def read_best_reviews(shop_ids: Sequence[int]) -> dict[int, ReviewList]:
    """Return the reviews with the highest scores of each of ``shop_ids``, at most two of an author,
    of equals the newest first. One statement. Raises MysqlDown."""
    numbers = [str(int(shop_id)) for shop_id in shop_ids]
    arms = [
        f"(SELECT 'stale', shop_id, seq FROM stale_list WHERE shop_id IN ({','.join(numbers)}))",
    ]
    arms += [
        f"""
        (
            SELECT 'review', {number}, content_id
            FROM (
                SELECT content_id, score, ROW_NUMBER() OVER (
                    PARTITION BY author_id
                    ORDER BY score DESC, content_id DESC
                ) AS of_author
                FROM (
                    SELECT content_id, author_id, {_score()} AS score
                    FROM ({_measure(_select_candidates(number))}) AS measured
                ) AS scored
            ) AS ranked
            WHERE of_author <= {MAX_PER_AUTHOR:d}
            ORDER BY score DESC, content_id DESC LIMIT {LIST_LENGTH:d}
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


def read_score(review_id: int) -> tuple[int, list[ScoreComponent]]:
    """Return the score of a review and its components. One statement. Raises MysqlDown."""
    weights, halves = ranking_settings().review_weights, ranking_settings().review_halves
    points = ", ".join(_points(name) for name in weights)
    [row] = mysql.fetch_all(
        f"""
        SELECT {_score()}, {", ".join(weights)}, {points}
        FROM ({_measure(f"SELECT {review_id:d} AS content_id")}) AS measured
        """
    )
    score, *numbers = map(int, row)
    values, points_of = numbers[: len(weights)], numbers[len(weights) :]
    return score, [
        ScoreComponent(name, value, points, weights[name], halves[name])
        for name, value, points in zip(weights, values, points_of, strict=True)
    ]


def _select_candidates(shop_id: str) -> str:
    reviews = f"content_type = 'review' AND parent_id = {shop_id} AND deleted_at IS NULL"
    return f"""
        (
            SELECT content_id
            FROM content FORCE INDEX (by_likes)
            WHERE {reviews}
            ORDER BY likes DESC, content_id DESC LIMIT {MAX_CANDIDATES:d}
        )
        UNION
        (
            SELECT content_id
            FROM content FORCE INDEX (by_parent)
            WHERE {reviews}
            ORDER BY created_at DESC, content_id DESC LIMIT {MAX_CANDIDATES:d}
        )
        """


def _measure(reviews: str) -> str:
    """Return SQL for the values of the components of ``reviews``, a SELECT of their ids."""
    return f"""
        SELECT c.content_id, c.author_id, GREATEST(c.likes - (
                   SELECT COUNT(*)
                   FROM reaction AS own
                   WHERE own.target_type = 'review'
                     AND own.target_id = c.content_id
                     AND own.kind = 'like'
                     AND own.actor_id = c.author_id
                     AND own.state = 1
               ), 0) AS likes, CHAR_LENGTH(COALESCE(c.body, '')) AS length,
               COALESCE(JSON_LENGTH(c.images), 0) AS images,
               GREATEST(DATEDIFF(UTC_DATE(), c.created_at), 0) AS age,
               COALESCE(u.likes_received_total, 0) AS author
        FROM ({reviews}) AS candidate
        STRAIGHT_JOIN content AS c ON c.content_type = 'review'
            AND c.content_id = candidate.content_id
        LEFT JOIN user_counter AS u ON u.user_id = c.author_id
        """


def _points(name: str) -> str:
    """Return SQL for the points of a component: more for a higher value, for a lower age."""
    half = f"{ranking_settings().review_halves[name]:d}"
    return f"{MAX_POINTS:d} * {half if name == 'age' else name} DIV ({name} + {half})"


def _score() -> str:
    """Return SQL for the score: the weighted mean of the points, rounded down."""
    weights = ranking_settings().review_weights
    terms = " + ".join(f"{weight:d} * ({_points(name)})" for name, weight in weights.items())
    return f"({terms}) DIV {sum(weights.values()):d}"


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


def find_shops(review_ids: Collection[int]) -> list[int]:
    """Return the shops of reviews, by id; no statement without reviews. Raises MysqlDown."""
    if not review_ids:
        return []
    rows = mysql.fetch_all(
        f"""
        SELECT DISTINCT parent_id
        FROM content
        WHERE content_type = 'review'
          AND content_id IN ({sql.render_ids(review_ids)})
          AND parent_id IS NOT NULL
        ORDER BY parent_id
        """
    )
    return [shop_id for (shop_id,) in rows]

"""Rankings of posts in MySQL: of all time by counters, of a window by hourly likes, which may
decay."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.core.reactions.model import TOMBSTONE_VERSION, PostLikes, PostRank
from plaza.core.reactions.reaction_log import EPOCH_NOW
from plaza.infra.mysql import mysql, sql
from plaza.social.recommendations.model import RankedHours

_LIVE = """
        STRAIGHT_JOIN content AS c ON c.content_type = 'post'
            AND c.content_id = {post_id}
            AND c.deleted_at IS NULL"""


def read_most_liked(count: int) -> list[PostLikes]:
    """Return the ``count`` most liked live posts. One statement. Raises MysqlDown."""
    return [PostLikes(*row) for row in mysql.fetch_all(_select_most_liked(count))]


def read_likes(post_ids: Sequence[int]) -> list[PostLikes]:
    """Return the likes of the posts that have a counter; 0 and the tombstone's version
    for posts that do not exist. One statement. Raises MysqlDown."""
    if not post_ids:
        return []
    numbers = sql.render_ids(post_ids)
    rows = mysql.fetch_all(
        f"""
        SELECT k.target_id, k.total, {EPOCH_NOW} + k.version,
               c.content_id IS NOT NULL AND c.deleted_at IS NULL
        FROM counter AS k FORCE INDEX (PRIMARY)
        LEFT JOIN content AS c ON c.content_type = 'post' AND c.content_id = k.target_id
        WHERE k.target_type = 'post'
          AND k.target_id IN ({numbers})
          AND k.kind = 'like'
        """
    )
    return [
        PostLikes(post_id, likes, version) if live else PostLikes(post_id, 0, TOMBSTONE_VERSION)
        for post_id, likes, version, live in rows
    ]


def read_ranking(after: PostRank | None, limit: int, cap: int) -> list[PostRank]:
    """Return a page past ``after`` of the ``cap`` most liked posts. One statement. Raises
    MysqlDown."""
    rows = mysql.fetch_all(
        f"""
        SELECT ranked AS likes, target_id AS post_id
        FROM ({_select_most_liked(cap)}) AS most_liked
        {_where_after(after, "ranked", "target_id")}
        ORDER BY ranked DESC, target_id DESC LIMIT {limit:d}
        """
    )
    return [PostRank(*row) for row in rows]


def read_window(hours: RankedHours, count: int) -> list[PostRank]:
    """Return the ``count`` posts with the most likes within ``hours``. One statement. Raises
    MysqlDown."""
    rows = mysql.fetch_all(_select_window(hours, count))
    return [PostRank(int(likes), post_id) for likes, post_id in rows]


def read_window_ranking(
    hours: RankedHours, after: PostRank | None, limit: int, cap: int
) -> list[PostRank]:
    """Return a page past ``after`` of the first ``cap`` posts of ``hours``. One statement. Raises
    MysqlDown."""
    rows = mysql.fetch_all(
        f"""
        SELECT likes, post_id
        FROM ({_select_window(hours, cap)}) AS ranked
        {_where_after(after, "likes", "post_id")}
        ORDER BY likes DESC, post_id DESC LIMIT {limit:d}
        """
    )
    return [PostRank(int(likes), post_id) for likes, post_id in rows]


def _select_most_liked(count: int) -> str:
    return f"""
        SELECT k.target_id, k.ranked, {EPOCH_NOW} + k.version
        FROM counter AS k FORCE INDEX (by_ranked){_LIVE.format(post_id="k.target_id")}
        WHERE k.target_type = 'post'
          AND k.kind = 'like'
          AND k.ranked > 0
        ORDER BY k.ranked DESC, k.target_id DESC LIMIT {count:d}
        """


def _select_window(hours: RankedHours, count: int) -> str:
    likes = f"SUM({_weigh_likes(hours)})"
    return f"""
        SELECT liked.likes, liked.post_id
        FROM (
            SELECT post_id, {likes} AS likes
            FROM post_hour
            WHERE hour >= {hours.first:d}
              AND hour <= {hours.last:d}
            GROUP BY post_id
            HAVING {likes} > 0
        ) AS liked{_LIVE.format(post_id="liked.post_id")}
        ORDER BY liked.likes DESC, liked.post_id DESC LIMIT {count:d}
        """


def _weigh_likes(hours: RankedHours) -> str:
    """Return SQL for the likes of an hour times its weight (``RankedHours``)."""
    if hours.half_life_h is None:
        return "net"
    age_h, half_life_h = f"(hour - {hours.landmark:d})", f"{hours.half_life_h:d}"
    # 1 << n is unsigned, and likes minus unlikes may be negative.
    return (
        f"net * ({half_life_h} + {age_h} MOD {half_life_h})"
        f" * CAST(1 << ({age_h} DIV {half_life_h}) AS SIGNED)"
    )


def _where_after(after: PostRank | None, likes: str, post_id: str) -> str:
    if after is None:
        return ""
    return (
        f"WHERE {likes} < {after.likes:d}"
        f" OR ({likes} = {after.likes:d} AND {post_id} < {after.post_id:d})"
    )

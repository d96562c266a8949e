"""Likes of posts and reviews as events, and the expected results of their log."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from plaza.core.reactions import LIKE, Kind, Target
from plaza.core.reactions.model import ReactionEvent, ReactionKey
from plaza.infra.mysql import mysql
from plaza.social.recommendations import like_roll_up, mysql_roll_up

NOW_US = time.time_ns() // 1000
HOUR_US = mysql_roll_up.HOUR_US


def early_in_an_hour() -> int:
    """Return the current hour since 1970; in its last 30 s, wait for the next one."""
    while time.time() % 3600 > 3570:
        time.sleep(0.5)
    return time.time_ns() // 1000 // HOUR_US


def like(
    target: Target,
    actor: int,
    on: bool = True,
    at: int = 0,
    kind: Kind = LIKE,
    *,
    provisional: bool = False,
) -> ReactionEvent:
    """Return an event ``at`` microseconds after the start of the test (negative: before it).
    The version of a provisional event is the last microsecond of the millisecond it was sent in."""
    key, version_us = ReactionKey(*target, kind.name, actor), NOW_US + at
    if provisional:
        return ReactionEvent(key, on, None, sent_ms=version_us // 1000)
    return ReactionEvent(key, on, version_us)


def review(review_id: int) -> Target:
    return Target("review", review_id)


def post(post_id: int) -> Target:
    return Target("post", post_id)


def add_reviews(shop_id: int, *review_ids: int) -> None:
    for review_id in review_ids:
        mysql.write(
            "INSERT INTO content (content_type, content_id, author_id, parent_id)"
            " VALUES ('review', %s, %s, %s)",
            (review_id, 9_000 + review_id, shop_id),
        )


def review_likes() -> dict[int, int]:
    rows = mysql.fetch_all("SELECT content_id, likes FROM content WHERE content_type = 'review'")
    return dict(rows)


def totals() -> dict[int, int]:
    """Return the expected likes."""
    return dict(
        mysql.fetch_all(
            "SELECT c.content_id, COALESCE(k.total, 0) FROM content c LEFT JOIN counter k"
            " ON k.target_type = 'review' AND k.target_id = c.content_id AND k.kind = 'like'"
            " WHERE c.content_type = 'review'"
        )
    )


def hours() -> dict[tuple[int, int], int]:
    """Return (hour, post) -> net, without zeros."""
    rows = mysql.fetch_all("SELECT hour, post_id, net FROM post_hour WHERE net <> 0")
    return {(hour, post_id): int(net) for hour, post_id, net in rows}


def hours_in_log(days: int = like_roll_up.RETENTION_HOURS // 24) -> dict[tuple[int, int], int]:
    """Return the expected hours, the sums of changes in the log of the last ``days``.
    Older days may be archived."""
    first_s = time.time() - days * 86_400
    rows = mysql.fetch_all(
        f"SELECT version DIV {HOUR_US}, target_id, change_by FROM reaction_log"
        " WHERE target_type = 'post' AND kind = 'like' AND create_date >= %s",
        (datetime.fromtimestamp(first_s, UTC).date(),),
    )
    results: dict[tuple[int, int], int] = {}
    for hour, post_id, change in rows:
        results[hour, post_id] = results.get((hour, post_id), 0) + change
    return {at: net for at, net in results.items() if net}


def find_wrong_changes() -> list[tuple[int, ...]]:
    """Return rows of the log with a wrong change.
    An event changes the count if it is newer than all events of its key that were saved before."""
    rows = mysql.fetch_all(
        "SELECT target_type, target_id, kind, actor_id, version, state, change_by FROM reaction_log"
        " ORDER BY seq"
    )
    newest: dict[tuple[object, ...], tuple[int, int]] = {}
    wrong = []
    for *key, version_us, state, change in rows:
        before_us, old_state = newest.get(tuple(key), (0, 0))
        is_newer = version_us > before_us
        if change != (state - old_state if is_newer else 0):
            wrong.append((*key, version_us, state, change))
        if is_newer:
            newest[tuple(key)] = version_us, state
    return wrong


def window_in_log(first_hour: int, last_hour: int) -> list[tuple[int, int]]:
    """Return the expected ranking of a window of hours, as (likes, post)."""
    likes: dict[int, int] = {}
    for (hour, post_id), net in hours_in_log().items():
        if first_hour <= hour <= last_hour:
            likes[post_id] = likes.get(post_id, 0) + net
    live = {
        post_id
        for (post_id,) in mysql.fetch_all(
            "SELECT content_id FROM content WHERE content_type = 'post' AND deleted_at IS NULL"
        )
    }
    results = [(net, post_id) for post_id, net in likes.items() if net > 0 and post_id in live]
    return sorted(results, reverse=True)


def most_liked(limit: int = 1_000) -> list[tuple[int, int]]:
    """Return the expected ranking of all time, as (likes, post)."""
    rows = mysql.fetch_all(
        "SELECT k.total, k.target_id FROM counter k JOIN content c"
        " ON c.content_type = 'post' AND c.content_id = k.target_id AND c.deleted_at IS NULL"
        " WHERE k.target_type = 'post' AND k.kind = 'like' AND k.total > 0"
        " ORDER BY k.total DESC, k.target_id DESC LIMIT %s",
        (limit,),
    )
    return [(int(likes), post_id) for likes, post_id in rows]


def best_reviews(shop_id: int, limit: int = 100) -> list[int]:
    """Return the expected recommendations of a shop when no event is in flight."""
    rows = mysql.fetch_all(
        "SELECT c.content_id FROM content c LEFT JOIN counter k"
        " ON k.target_type = 'review' AND k.target_id = c.content_id AND k.kind = 'like'"
        " WHERE c.content_type = 'review' AND c.parent_id = %s AND c.deleted_at IS NULL"
        " ORDER BY COALESCE(k.total, 0) DESC, c.content_id DESC LIMIT %s",
        (shop_id, limit),
    )
    return [review_id for (review_id,) in rows]

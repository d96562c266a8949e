"""Posts, comments and reviews: what people react to.

Whether something is there is known first by this process's memory, then by a marker in Redis, then
by MySQL.
"""

from __future__ import annotations

from contextlib import suppress

from cachetools import TTLCache

from plaza.content import mysql_content, redis_content
from plaza.content.content import There
from plaza.content.mysql_content import find_live, read_authors
from plaza.infra.redis import RedisDown

__all__ = [
    "There",
    "find",
    "find_live",
    "forget_seen",
    "look_up",
    "read_authors",
    "remember_seen",
    "seen_lately",
]

_SEEN: TTLCache[tuple[str, int], bool] = TTLCache(maxsize=10_000, ttl=30)


def seen_lately(content_type: str, content_id: int) -> bool:
    """True when this process saw it live within half a minute."""
    return (content_type, content_id) in _SEEN


def remember_seen(content_type: str, content_id: int) -> None:
    """This process just saw it live."""
    _SEEN[content_type, content_id] = True


def forget_seen() -> None:
    """Empty this process's memory of what is there."""
    _SEEN.clear()


def find(content_type: str, content_id: int) -> There:
    """Whether it is there: memory, then Redis, then MySQL. Raises MysqlDown."""
    if seen_lately(content_type, content_id):
        return There.LIVE
    try:
        there = redis_content.read_mark(content_type, content_id)
    except RedisDown:
        there = None
    if there is None:
        return look_up(content_type, content_id)
    if there is There.LIVE:
        remember_seen(content_type, content_id)
    return there


def look_up(content_type: str, content_id: int) -> There:
    """Whether it is there, by MySQL; leaves a marker for those who come after. Raises MysqlDown."""
    there = mysql_content.look_up(content_type, content_id)
    if there is There.LIVE:
        remember_seen(content_type, content_id)
    with suppress(RedisDown):  # the marker only saves the next one a look
        redis_content.mark(content_type, content_id, there)
    return there

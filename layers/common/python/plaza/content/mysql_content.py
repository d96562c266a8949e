"""Content in MySQL."""

from __future__ import annotations

from collections.abc import Iterable

from pymysql.cursors import Cursor

from plaza.content.content import There
from plaza.infra import mysql


def look_up(content_type: str, content_id: int) -> There:
    """Whether it is there. Raises MysqlDown."""
    rows = mysql.fetch_all(
        "SELECT deleted_at IS NOT NULL FROM content WHERE content_type = %s AND content_id = %s",
        (content_type, content_id),
    )
    if not rows:
        return There.NONE
    return There.GONE if rows[0][0] else There.LIVE


def read_authors(cursor: Cursor, content: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """The author of each piece of ``content``; what isn't there has none. One statement."""
    ids: dict[str, list[str]] = {}
    for content_type, content_id in content:
        ids.setdefault(content_type, []).append(str(int(content_id)))
    if not ids:
        return {}
    arms = [
        f"SELECT content_type, content_id, author_id FROM content"
        f" WHERE content_type = %s AND content_id IN ({','.join(numbers)})"
        for numbers in ids.values()
    ]
    cursor.execute(" UNION ALL ".join(arms), list(ids))
    return {(content_type, content_id): author for content_type, content_id, author in cursor}

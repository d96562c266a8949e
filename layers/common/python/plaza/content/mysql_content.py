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


def find_live(content: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
    """Those of ``content`` that are there and not deleted. One statement. Raises MysqlDown."""
    arms, types = _by_type("content_type, content_id", content, " AND deleted_at IS NULL")
    return set(mysql.fetch_all(arms, types)) if types else set()


def read_authors(cursor: Cursor, content: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """The author of each piece of ``content``; what isn't there has none. One statement."""
    arms, types = _by_type("content_type, content_id, author_id", content)
    if not types:
        return {}
    cursor.execute(arms, types)
    return {(content_type, content_id): author for content_type, content_id, author in cursor}


def _by_type(
    columns: str, content: Iterable[tuple[str, int]], condition: str = ""
) -> tuple[str, list[str]]:
    """A SELECT of ``columns`` of each of ``content``, one arm a type, and its arguments."""
    ids: dict[str, list[str]] = {}
    for content_type, content_id in content:
        ids.setdefault(content_type, []).append(str(int(content_id)))
    arms = [
        f"SELECT {columns} FROM content"
        f" WHERE content_type = %s AND content_id IN ({','.join(numbers)}){condition}"
        for numbers in ids.values()
    ]
    return " UNION ALL ".join(arms), list(ids)

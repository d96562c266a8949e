"""Comments as notifications need them: they notify the author of their post."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.core.counters import COMMENT
from plaza.infra.mysql import mysql

KIND = COMMENT
ROWS = """
    SELECT parent_id AS subject_id, notified_sequence
    FROM content FORCE INDEX (by_parent)
    WHERE content_type = 'comment'
      AND deleted_at IS NULL
"""
"""SELECT of the post and the sequence of each comment that is not deleted."""


def read_actors(post_ids: Sequence[int], count: int) -> dict[int, list[int]]:
    """Return post -> authors of its ``count`` newest visible comments, newest first, each once. One
    statement, none without posts. Raises MysqlDown."""
    arms = [
        f"""
        (
            SELECT parent_id, author_id, created_at, content_id
            FROM content FORCE INDEX (by_parent)
            WHERE content_type = 'comment'
              AND parent_id = {post_id:d}
              AND deleted_at IS NULL
              AND hidden_at IS NULL
            ORDER BY created_at DESC, content_id DESC LIMIT {count:d}
        )
        """
        for post_id in post_ids
    ]
    authors: dict[int, list[int]] = {}
    rows = mysql.fetch_all(" UNION ALL ".join(arms)) if arms else ()
    for post_id, author_id, *_ in sorted(rows, key=lambda row: row[2:], reverse=True):
        of_post = authors.setdefault(post_id, [])
        if author_id not in of_post:
            of_post.append(author_id)
    return authors

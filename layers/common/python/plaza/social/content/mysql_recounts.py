"""Texts that counters count, and that notify; the manifest offers them."""

from __future__ import annotations

from plaza.core.counters import COMMENT, RecountedRows

COMMENTS = RecountedRows(
    "post",
    COMMENT,
    """
    SELECT parent_id AS id
    FROM content
    WHERE content_type = 'comment'
      AND deleted_at IS NULL
      AND parent_id IS NOT NULL
    """,
)
POSTS = RecountedRows(
    "user",
    "posts_total",
    """
    SELECT author_id AS id
    FROM content
    WHERE content_type = 'post'
      AND deleted_at IS NULL
    """,
)

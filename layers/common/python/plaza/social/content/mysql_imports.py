"""Imported texts in MySQL. Each function runs one statement."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from plaza.infra.mysql import sql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime.codec import TEXT_LIST
from plaza.social.content.model import Draft


class ImportedText(NamedTuple):
    """A post or comment of another system; ``created_us``: microseconds since 1970."""

    id: int
    created_us: int
    draft: Draft


def lock_posts(cursor: Cursor, post_ids: Iterable[int]) -> set[int]:
    """Return those posts that are live, with a shared lock on each until the commit."""
    cursor.execute(
        f"""
        SELECT content_id
        FROM content FORCE INDEX (PRIMARY)
        WHERE content_type = 'post'
          AND content_id IN ({sql.render_ids(sorted(post_ids))})
          AND deleted_at IS NULL
        LOCK IN SHARE MODE
        """
    )
    return {post_id for (post_id,) in cursor.fetchall()}


def find_existing(
    cursor: Cursor, content_type: str, ids: Collection[int]
) -> dict[int, tuple[int, int | None]]:
    """Return id -> (author, parent) of texts of a type that exist, deleted ones too."""
    cursor.execute(
        f"""
        SELECT content_id, author_id, parent_id
        FROM content FORCE INDEX (PRIMARY)
        WHERE content_type = %s
          AND content_id IN ({sql.render_ids(ids)})
        """,
        (content_type,),
    )
    return {content_id: (author, parent) for content_id, author, parent in cursor.fetchall()}


def insert(cursor: Cursor, texts: Sequence[ImportedText]) -> None:
    """Insert texts. Raises IntegrityError if another process inserted one of them."""
    rows = [
        (
            *(text.draft.type, text.id, text.draft.author_id, sql.from_us(text.created_us)),
            *(text.draft.parent_id, text.draft.kind, text.draft.title, text.draft.body),
            TEXT_LIST.encode(text.draft.images) if text.draft.images else None,
        )
        for text in texts
    ]
    cursor.execute(
        f"""
        INSERT INTO content (content_type, content_id, author_id, created_at, parent_id, kind,
            title, body, images)
        VALUES {", ".join(["(%s, %s, %s, %s, %s, %s, %s, %s, %s)"] * len(rows))}
        """,
        [value for row in rows for value in row],
    )

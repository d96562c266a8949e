"""Texts in MySQL, the source of truth. A text is one row; deletion sets ``deleted_at``, a change of
what readers see raises ``version``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from plaza.core.reactions import Target
from plaza.core.targets import Existence
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime.codec import TEXT_LIST
from plaza.infra.runtime.observability import current_request_id
from plaza.social.content.model import Draft, ListCursor, StoredText, Text

_COLUMNS = (
    "content_type, content_id, author_id, created_at, deleted_at IS NOT NULL,"
    " parent_id, kind, title, body, images, score, version, edited_at, hidden_at IS NOT NULL,"
    " order_id"
)
_MAX_DRAINED = 1_000
REMAINS = """
EXISTS (
  SELECT 1
  FROM content
  WHERE content_type IN ('post', 'comment', 'review')
    AND author_id = {user_id}
    AND deleted_at IS NULL
)
"""
"""Whether an erased user has texts again."""


def lock_post(cursor: Cursor, post_id: int) -> tuple[Existence, int]:
    """Return (whether the post exists, its author or 0), with a shared lock on it until the
    commit."""
    cursor.execute(
        """
        SELECT deleted_at IS NOT NULL, author_id
        FROM content
        WHERE content_type = 'post'
          AND content_id = %s
        LOCK IN SHARE MODE
        """,
        (post_id,),
    )
    row = cursor.fetchone()
    return _existence(row), int(row[1]) if row else 0


def insert(cursor: Cursor, content_id: int, draft: Draft) -> Text:
    """Store ``draft`` and return the stored text. Two statements."""
    cursor.execute(
        """
        INSERT INTO content (content_type, content_id, author_id, created_at, parent_id, kind,
            title, body, images, score, order_id, request_id)
        VALUES (%s, %s, %s, UTC_TIMESTAMP(6), %s, %s, %s, %s, %s, %s, %s, %s)
        """,
        (
            draft.type,
            content_id,
            draft.author_id,
            draft.parent_id,
            draft.kind,
            draft.title,
            draft.body,
            TEXT_LIST.encode(draft.images) if draft.images else None,
            draft.score,
            draft.order_id,
            current_request_id(),
        ),
    )
    return _read_back(cursor, Target(draft.type, content_id))


def take_review_slot(cursor: Cursor, review_id: int, draft: Draft) -> bool:
    """Store that a review is the one of its order, or of its author and shop without an order;
    return False if there is one. One statement."""
    taken = cursor.execute(
        """
        INSERT IGNORE INTO review_slot (shop_id, author_id, order_id, review_id)
        VALUES (%s, %s, %s, %s)
        """,
        (draft.parent_id, draft.author_id, draft.order_id or 0, review_id),
    )
    return taken == 1


def release_review_slot(cursor: Cursor, review_id: int) -> None:
    """Let the author of a deleted review write another one. One statement."""
    cursor.execute("DELETE FROM review_slot WHERE review_id = %s", (review_id,))


def lock(cursor: Cursor, target: Target) -> StoredText | None:
    """Return a text, locked until the commit; None if it does not exist. One statement."""
    cursor.execute(
        f"""
        SELECT {_COLUMNS}
        FROM content
        WHERE content_type = %s
          AND content_id = %s FOR UPDATE
        """,
        target,
    )
    row = cursor.fetchone()
    return _stored(row) if row else None


def edit(cursor: Cursor, text: Text) -> Text:
    """Store the title, the body and the images of a text and return it. Two statements."""
    cursor.execute(
        """
        UPDATE content
        SET title = %s, body = %s, images = %s, version = version + 1,
            edited_at = UTC_TIMESTAMP(6)
        WHERE content_type = %s
          AND content_id = %s
        """,
        (
            text.title,
            text.body,
            TEXT_LIST.encode(text.images) if text.images else None,
            *text.target,
        ),
    )
    return _read_back(cursor, text.target)


def set_hidden(
    cursor: Cursor, target: Target, moderator_id: int | None, key_id: str | None = None
) -> Text:
    """Hide a text (None: show it again) and return it. ``key_id``: the key that acts for the
    moderator. Two statements."""
    cursor.execute(
        """
        UPDATE content
        SET hidden_at = IF(%s IS NULL, NULL, UTC_TIMESTAMP(6)), hidden_by = %s,
            hidden_by_key = %s,
            version = version + 1
        WHERE content_type = %s
          AND content_id = %s
        """,
        (moderator_id, moderator_id, key_id, *target),
    )
    return _read_back(cursor, target)


def take_hiding_over(cursor: Cursor, target: Target, moderator_id: int) -> None:
    """Make a moderator the one who hid a text that its author's closed account hides."""
    cursor.execute(
        """
        UPDATE content
        SET hidden_by = %s
        WHERE content_type = %s
          AND content_id = %s
          AND hidden_by = author_id
        """,
        (moderator_id, *target),
    )


def mark_deleted(cursor: Cursor, target: Target) -> bool:
    """Set the time of deletion; return False if it is already set."""
    return (
        cursor.execute(
            """
            UPDATE content
            SET deleted_at = UTC_TIMESTAMP(6)
            WHERE content_type = %s
              AND content_id = %s
              AND deleted_at IS NULL
            """,
            target,
        )
        == 1
    )


def set_notified_sequences(cursor: Cursor, sequences: Mapping[int, int | None]) -> None:
    """Store the sequences of comments in the unread counter of the author of their post; None: the
    refresh decides. One write."""
    cases = " ".join(
        f"WHEN {comment_id:d} THEN {'NULL' if sequence is None else int(sequence)}"
        for comment_id, sequence in sorted(sequences.items())
    )
    mysql.send(
        cursor,
        f"""
        UPDATE content
        SET notified_sequence = CASE content_id {cases} END
        WHERE content_type = 'comment'
          AND content_id IN ({sql.render_ids(sorted(sequences))})
        """,
    )


def read_notified(cursor: Cursor, comment_id: int) -> tuple[int, int]:
    """Return (author of the post of a comment, sequence of the comment in that author's unread
    counter, 0 if it did not notify). One statement."""
    cursor.execute(
        """
        SELECT post.author_id, COALESCE(comment.notified_sequence, 0)
        FROM content AS comment
        JOIN content AS post
            ON  post.content_type = 'post'
            AND post.content_id = comment.parent_id
        WHERE comment.content_type = 'comment'
          AND comment.content_id = %s
        """,
        (comment_id,),
    )
    row = cursor.fetchone()
    return (int(row[0]), int(row[1])) if row else (0, 0)


def find_pending_notifications(comment_ids: Iterable[int]) -> dict[tuple[int, int], list[int]]:
    """Return (post, its author) -> the comments that the refresh has to notify. One statement.
    Raises MysqlDown."""
    numbers = sql.render_ids(comment_ids)
    if not numbers:
        return {}
    rows = mysql.fetch_all(
        f"""
        SELECT post.content_id, post.author_id, comment.content_id
        FROM content AS comment FORCE INDEX (PRIMARY)
        STRAIGHT_JOIN content AS post FORCE INDEX (PRIMARY)
            ON  post.content_type = 'post'
            AND post.content_id = comment.parent_id
        WHERE comment.content_type = 'comment'
          AND comment.content_id IN ({numbers})
          AND comment.notified_sequence IS NULL
          AND comment.deleted_at IS NULL
        ORDER BY post.content_id
        """
    )
    comments: dict[tuple[int, int], list[int]] = {}
    for post_id, author_id, comment_id in rows:
        comments.setdefault((post_id, author_id), []).append(comment_id)
    return comments


def lock_pending_notifications(cursor: Cursor, comment_ids: Iterable[int]) -> dict[int, int]:
    """Return comment -> author of the comments that still have to notify, locked until the commit.
    One statement."""
    cursor.execute(
        f"""
        SELECT content_id, author_id
        FROM content FORCE INDEX (PRIMARY)
        WHERE content_type = 'comment'
          AND content_id IN ({sql.render_ids(comment_ids)})
          AND notified_sequence IS NULL
          AND deleted_at IS NULL
        ORDER BY content_id FOR UPDATE
        """
    )
    return dict(cursor.fetchall())


def find_recipients(comment_ids: Iterable[int]) -> list[int]:
    """Return the authors of the posts of the comments that notified. One statement. Raises
    MysqlDown."""
    numbers = sql.render_ids(comment_ids)
    if not numbers:
        return []
    rows = mysql.fetch_all(
        f"""
        SELECT DISTINCT post.author_id
        FROM content AS comment FORCE INDEX (PRIMARY)
        STRAIGHT_JOIN content AS post FORCE INDEX (PRIMARY)
            ON  post.content_type = 'post'
            AND post.content_id = comment.parent_id
        WHERE comment.content_type = 'comment'
          AND comment.content_id IN ({numbers})
          AND comment.notified_sequence > 0
        """
    )
    return [author_id for (author_id,) in rows]


def delay_count(cursor: Cursor, post_id: int, comment_id: int, delta: int) -> None:
    """Store a delta that a refresh adds to the comments of a post later. One statement."""
    cursor.execute(
        "INSERT INTO delayed_comment_count (post_id, comment_id, delta) VALUES (%s, %s, %s)",
        (post_id, comment_id, delta),
    )


def find_delayed_counts(post_ids: Iterable[int]) -> list[int]:
    """Return the ids of posts with delayed deltas, sorted. One statement. Raises MysqlDown."""
    numbers = sql.render_ids(post_ids)
    if not numbers:
        return []
    rows = mysql.fetch_all(
        f"""
        SELECT DISTINCT post_id
        FROM delayed_comment_count
        WHERE post_id IN ({numbers})
        ORDER BY post_id
        """
    )
    return [post_id for (post_id,) in rows]


def drain_delayed_counts(cursor: Cursor, post_id: int) -> int:
    """Delete up to 1,000 delayed deltas of a post and return their sum. Two statements. The rows
    stay locked until the commit, so that only this transaction adds them."""
    cursor.execute(
        """
        SELECT comment_id, delta
        FROM delayed_comment_count
        WHERE post_id = %s
        ORDER BY comment_id, delta LIMIT %s FOR UPDATE
        """,
        (post_id, _MAX_DRAINED),
    )
    changes = cursor.fetchall()
    if not changes:
        return 0
    pairs = ",".join(f"({int(comment_id)},{int(delta)})" for comment_id, delta in changes)
    mysql.send(
        cursor,
        f"""
        DELETE FROM delayed_comment_count
        WHERE post_id = %s
          AND (comment_id, delta) IN ({pairs})
        """,
        (post_id,),
    )
    return sum(delta for _, delta in changes)


def read(targets: Iterable[Target]) -> dict[Target, StoredText]:
    """Return the targets that exist or were deleted. One statement. Raises MysqlDown."""
    arms = [
        f"""
        SELECT {_COLUMNS}
        FROM content FORCE INDEX (PRIMARY)
        WHERE content_type = '{content_type}'
          AND content_id IN ({numbers})
        """
        for content_type, numbers in sql.render_ids_by_type(targets).items()
    ]
    texts = map(_stored, mysql.fetch_all(" UNION ALL ".join(arms)) if arms else ())
    return {stored.text.target: stored for stored in texts}


def find_live_of_author(author_id: int, limit: int) -> list[Target]:
    """Return up to ``limit`` texts of a user that are not deleted. One statement. Raises
    MysqlDown."""
    return _find_of_author(author_id, limit)


def find_visible_of_author(author_id: int, limit: int) -> list[Target]:
    """Return up to ``limit`` texts of a user that are neither deleted nor hidden. One statement.
    Raises MysqlDown."""
    return _find_of_author(author_id, limit, "AND hidden_at IS NULL")


def find_hidden_by_author(author_id: int, since: datetime, limit: int) -> list[Target]:
    """Return up to ``limit`` texts of a user that the user hid, ``since`` then. One statement.
    Raises MysqlDown."""
    return _find_of_author(author_id, limit, "AND hidden_by = author_id AND hidden_at >= %s", since)


def _find_of_author(
    author_id: int, limit: int, condition: str = "", *args: datetime
) -> list[Target]:
    rows = mysql.fetch_all(
        f"""
        SELECT content_type, content_id
        FROM content FORCE INDEX (by_author)
        WHERE content_type IN ('post', 'comment', 'review')
          AND author_id = %s
          AND deleted_at IS NULL
          {condition}
        LIMIT {limit:d}
        """,
        (author_id, *args),
    )
    return [Target(*row) for row in rows]


def blank_deleted_of_author(author_id: int) -> int:
    """Remove what up to 1,000 deleted texts of a user say; return their number. One statement.
    Raises MysqlDown."""
    return mysql.write(
        """
        UPDATE content
        SET title = NULL, body = NULL, images = NULL, score = NULL, order_id = NULL,
            request_id = NULL
        WHERE content_type IN ('post', 'comment', 'review')
          AND author_id = %s
          AND deleted_at IS NOT NULL
          AND COALESCE(title, body, images, score, order_id, request_id) IS NOT NULL
        LIMIT 1000
        """,
        (author_id,),
    )


def read_of_author(author_id: int, after: ListCursor | None, limit: int) -> list[Text]:
    """Return a page of a user's posts, newest first. One statement. Raises MysqlDown."""
    return _read_page("post", "author_id", author_id, after, True, limit)


def read_of_parent(
    content_type: str, parent_id: int, after: ListCursor | None, latest: bool, limit: int
) -> list[Text]:
    """Return a page of a post's comments or a shop's reviews, newest first if ``latest``. One
    statement. Raises MysqlDown."""
    return _read_page(content_type, "parent_id", parent_id, after, latest, limit)


def read_positions(content_type: str, owner_id: int, latest: bool, limit: int) -> list[ListCursor]:
    """Return the cursors of the first page of a list. The owner is the author of posts, the post
    of comments or the shop of reviews. One statement, answered by an index. Raises MysqlDown."""
    column, index = (
        ("author_id", "by_author") if content_type == "post" else ("parent_id", "by_parent")
    )
    order = "DESC" if latest else "ASC"
    rows = mysql.fetch_all(
        f"""
        SELECT created_at, content_id
        FROM content FORCE INDEX ({index})
        WHERE content_type = %s
          AND {column} = %s
          AND deleted_at IS NULL
        ORDER BY created_at {order}, content_id {order} LIMIT {limit:d}
        """,
        (content_type, owner_id),
    )
    return [ListCursor(sql.to_us(created_at), content_id) for created_at, content_id in rows]


def _read_page(
    content_type: str,
    column: str,
    owner_id: int,
    after: ListCursor | None,
    latest: bool,
    limit: int,
) -> list[Text]:
    index = {"author_id": "by_author", "parent_id": "by_parent"}[column]
    sign, order = ("<", "DESC") if latest else (">", "ASC")
    where, args = "", [content_type, owner_id]
    if after is not None:
        at = sql.from_us(after.created_us)
        where = f" AND (created_at {sign} %s OR (created_at = %s AND content_id {sign} %s))"
        args += [at, at, after.id]
    rows = mysql.fetch_all(
        f"""
        SELECT {_COLUMNS}
        FROM content FORCE INDEX ({index})
        WHERE content_type = %s
          AND {column} = %s
          AND deleted_at IS NULL{where}
        ORDER BY created_at {order}, content_id {order} LIMIT {limit:d}
        """,
        args,
    )
    return [_stored(row).text for row in rows]


def _read_back(cursor: Cursor, target: Target) -> Text:
    cursor.execute(
        f"SELECT {_COLUMNS} FROM content WHERE content_type = %s AND content_id = %s", target
    )
    [row] = cursor.fetchall()
    return _stored(row).text


def _existence(row: tuple[Any, ...] | None) -> Existence:
    if row is None:
        return Existence.MISSING
    return Existence.DELETED if row[0] else Existence.LIVE


def _stored(row: tuple[Any, ...]) -> StoredText:
    (content_type, content_id, author_id, created_at, deleted, parent_id, kind, title, body,
     images, score, version, edited_at, hidden, order_id) = row  # fmt: skip
    is_post = content_type == "post"
    text = Text(
        type=content_type,
        id=content_id,
        author_id=author_id,
        created_us=sql.to_us(created_at),
        parent_id=parent_id,
        kind=kind or ("note" if is_post else None),  # seeded rows have no kind, title or body
        title=title or ("" if is_post else None),
        body=body or "",
        images=TEXT_LIST.decode(images) if images else (),
        score=score,
        order_id=order_id,
        version=version,
        edited_us=sql.to_us(edited_at) if edited_at else None,
        hidden=bool(hidden),
    )
    return StoredText(text, bool(deleted))

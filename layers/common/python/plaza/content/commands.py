"""Writing and deleting: announced, done in one transaction, then told to Redis.

Who dies between the commit and the telling has announced the write before: its refresh comes.
"""

from __future__ import annotations

from pymysql.cursors import Cursor

from plaza import counters, idempotency
from plaza.content import mysql_store, publish, queries, refresh
from plaza.content.model import (
    ContentView,
    Draft,
    NotAuthor,
    StoredText,
    Text,
)
from plaza.idempotency import IdempotentRequest
from plaza.infra import ids, mysql
from plaza.infra.errors import Unavailable
from plaza.infra.observability import error_fields, record
from plaza.reactions import Target
from plaza.targets import announce
from plaza.users import cards


def create(draft: Draft, attempt: IdempotentRequest | None = None) -> ContentView:
    """What was written, by this attempt or by one before.

    Raises NotFound and Gone for what it is about, ContentDeleted also for what an attempt
    before wrote and somebody deleted; KeyReused; MysqlDown, RedisDown: try again. An attempt has a
    key, so that trying again is safe whatever happened.
    """
    if attempt and (made := idempotency.find(draft.author_id, attempt)):
        return _read_created(draft.author_id, Target(*made))
    queries.require_parent(draft)
    author = cards.read_cards([draft.author_id]).get(draft.author_id)
    target = Target(draft.type, ids.new_id())
    announced = announce.announce_write(*target)
    text = mysql.run_in_transaction(
        lambda cursor: _write(cursor, target, draft, attempt, announced)
    )
    if text is None:
        return create(draft, attempt)
    if text.type == "post":
        publish.publish([text.id])
    _project(StoredText(text, deleted=False), announced)
    return queries.build_new_view(text, author)


def delete(target: Target, actor_id: int) -> None:
    """Delete what the actor wrote. What it received stays counted.

    Raises ContentMissing, NotAuthor; ContentDeleted when it was deleted before; MysqlDown.
    """
    text, deleted = queries.read_stored(target)
    if text.author_id != actor_id:
        queries.require_not_deleted(target, deleted)
        raise NotAuthor(f"Somebody else wrote the {target.type} {target.id}")
    announced = False
    if not deleted:
        announced = announce.announce_write(*target)
        deleted = not mysql.run_in_transaction(lambda cursor: _delete(cursor, text, announced))
    # Also when it was deleted before: who did it may have died before Redis was told.
    _project(StoredText(text, deleted=True), announced)
    queries.require_not_deleted(target, deleted)


def _write(
    cursor: Cursor,
    target: Target,
    draft: Draft,
    attempt: IdempotentRequest | None,
    announced: bool = False,
) -> Text | None:
    """The text, None when the attempt's key stands for something already.

    The counter comes last: its row is locked for the commit only.
    """
    if attempt and not idempotency.claim(cursor, draft.author_id, attempt, target):
        return None
    if draft.type == "comment" and draft.parent_id is not None:
        queries.require_existing(
            Target("post", draft.parent_id), mysql_store.lock_post(cursor, draft.parent_id)
        )
    if draft.type == "review" and draft.parent_id is not None:
        queries.require_existing(
            Target("shop", draft.parent_id), mysql_store.lock_shop(cursor, draft.parent_id)
        )
    text = mysql_store.insert(cursor, target.id, draft)
    _count(cursor, text, 1, announced)
    return text


def _delete(cursor: Cursor, text: Text, announced: bool = False) -> bool:
    if not mysql_store.mark_deleted(cursor, text.target):
        return False
    _count(cursor, text, -1, announced)
    return True


def _count(cursor: Cursor, draft: Draft, delta: int, announced: bool = False) -> None:
    """Move the counter that a text is in.

    A comment does not wait for the counter of its post, which consumers of likes lock for longer
    than a request should take: if it was ``announced``, its refresh moves the counter later.
    """
    if draft.type == "post":
        counters.add_to_users(cursor, {(draft.author_id,): {"posts_total": delta}})
    elif draft.type == "comment" and draft.parent_id is not None:
        post = "post", draft.parent_id
        if announced and isinstance(draft, Text) and not counters.try_lock_content(cursor, post):
            mysql_store.delay_count(cursor, draft.parent_id, draft.id, delta)
        else:
            counters.add_to_content(cursor, {post: {"comment_total": delta}})


def _read_created(author_id: int, target: Target) -> ContentView:
    text, deleted = queries.read_stored(target)
    # Who wrote it may have died before Redis was told, and the client tries again for that reason.
    _project(StoredText(text, deleted), announced=False)
    queries.require_not_deleted(target, deleted)
    [whole] = queries.build_views([text], author_id)
    return whole


def _project(stored: StoredText, announced: bool) -> None:
    """Tell Redis. It is in MySQL already, so there is no reason left to refuse: the announced
    refresh tells it later, or what Redis has runs out."""
    queries.cache_in_process(stored)
    try:
        refresh.project_texts([stored])
    except Unavailable as error:
        record(
            "projection_delayed",
            {"projections_delayed": 1},
            announced=announced,
            **error_fields(error),
        )

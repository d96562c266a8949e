"""Writing and deleting: announced, done in one transaction, then told to Redis.

Who dies between the commit and the telling has announced the write before: its refresh comes.
"""

from __future__ import annotations

from pymysql.cursors import Cursor

from plaza import counters, idempotency
from plaza.content import mysql_content, publishing, reading, refreshing
from plaza.content.content import (
    Draft,
    NotYours,
    Stored,
    Text,
    Whole,
)
from plaza.idempotency import Attempt
from plaza.infra import ids, mysql
from plaza.infra.errors import Unavailable
from plaza.infra.observability import cause, record
from plaza.reactions import Target
from plaza.targets import announcing
from plaza.users import cards


def create(draft: Draft, attempt: Attempt | None = None) -> Whole:
    """What was written, by this attempt or by one before.

    Raises NotFound and Gone for what it is about, ContentGone also for what an attempt
    before wrote and somebody deleted; KeyReused; MysqlDown, RedisDown: try again. An attempt has a
    key, so that trying again is safe whatever happened.
    """
    if attempt and (made := idempotency.find(draft.author_id, attempt)):
        return _answer_again(draft.author_id, Target(*made))
    reading.require_parent(draft)
    author = cards.read_cards([draft.author_id]).get(draft.author_id)
    target = Target(draft.type, ids.new_id())
    announced = announcing.announce(*target)
    text = mysql.atomically(lambda cursor: _write(cursor, target, draft, attempt, announced))
    if text is None:
        return create(draft, attempt)
    if text.type == "post":
        publishing.publish([text.id])
    _tell(Stored(text, deleted=False), announced)
    return reading.untouched(text, author)


def delete(target: Target, actor_id: int) -> None:
    """Delete what the actor wrote. What it received stays counted.

    Raises ContentMissing, NotYours; ContentGone when it was deleted before; MysqlDown.
    """
    text, deleted = reading.read_stored(target)
    if text.author_id != actor_id:
        reading.insist(target, deleted)
        raise NotYours(f"Somebody else wrote the {target.type} {target.id}")
    announced = False
    if not deleted:
        announced = announcing.announce(*target)
        deleted = not mysql.atomically(lambda cursor: _delete(cursor, text, announced))
    # Also when it was deleted before: who did it may have died before Redis was told.
    _tell(Stored(text, deleted=True), announced)
    reading.insist(target, deleted)


def _write(
    cursor: Cursor, target: Target, draft: Draft, attempt: Attempt | None, announced: bool = False
) -> Text | None:
    """The text, None when the attempt's key stands for something already.

    The counter comes last: its row is locked for the commit only.
    """
    if attempt and not idempotency.claim(cursor, draft.author_id, attempt, target):
        return None
    if draft.type == "comment" and draft.parent_id is not None:
        reading.insist_there(
            Target("post", draft.parent_id), mysql_content.hold_post(cursor, draft.parent_id)
        )
    if draft.type == "review" and draft.parent_id is not None:
        reading.insist_there(
            Target("shop", draft.parent_id), mysql_content.hold_shop(cursor, draft.parent_id)
        )
    text = mysql_content.insert(cursor, target.id, draft)
    _count(cursor, text, 1, announced)
    return text


def _delete(cursor: Cursor, text: Text, announced: bool = False) -> bool:
    if not mysql_content.mark_deleted(cursor, text.target):
        return False
    _count(cursor, text, -1, announced)
    return True


def _count(cursor: Cursor, draft: Draft, by: int, announced: bool = False) -> None:
    """Move the counter that a text is in.

    A comment does not wait for the counter of its post, which consumers of likes lock for longer
    than a request should take: if it was ``announced``, its refresh moves the counter later.
    """
    if draft.type == "post":
        counters.add_to_users(cursor, {(draft.author_id,): {"posts_total": by}})
    elif draft.type == "comment" and draft.parent_id is not None:
        post = "post", draft.parent_id
        if announced and isinstance(draft, Text) and not counters.try_lock_content(cursor, post):
            mysql_content.put_off_count(cursor, draft.parent_id, draft.id, by)
        else:
            counters.add_to_content(cursor, {post: {"comment_total": by}})


def _answer_again(author_id: int, target: Target) -> Whole:
    text, deleted = reading.read_stored(target)
    # Who wrote it may have died before Redis was told, and the client tries again for that reason.
    _tell(Stored(text, deleted), announced=False)
    reading.insist(target, deleted)
    [whole] = reading.complete([text], author_id)
    return whole


def _tell(stored: Stored, announced: bool) -> None:
    """Tell Redis. It is in MySQL already, so there is no reason left to refuse: the announced
    refresh tells it later, or what Redis has runs out."""
    reading.remember(stored)
    try:
        refreshing.tell([stored])
    except Unavailable as error:
        record("telling_postponed", {"tellings_postponed": 1}, announced=announced, **cause(error))

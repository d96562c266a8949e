"""Create, edit, hide and delete texts: announce, write in one transaction, project to Redis.

If the process ends between the commit and the projection, the announced refresh projects the text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from plaza.core import counters, idempotency, switches
from plaza.core.event_log import append_events
from plaza.core.event_log.model import EventDraft
from plaza.core.idempotency import IdempotentRequest
from plaza.core.reactions import Target
from plaza.core.targets import announce
from plaza.infra.contexts import offers
from plaza.infra.derived import ids
from plaza.infra.http.requests import check_tag, tag_version
from plaza.infra.mysql import mysql, participants
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.mysql.participants import Changes
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.observability import error_fields, record
from plaza.people.users import cards
from plaza.social.content import mysql_store, publish, queries, refresh
from plaza.social.content.model import (
    AlreadyReviewed,
    ContentView,
    Draft,
    NotAuthor,
    OrderUnusable,
    StoredText,
    Text,
    move_of,
)
from plaza.social.shop_scores import ShopCounter, totals


def create(draft: Draft, attempt: IdempotentRequest | None = None) -> ContentView:
    """Store ``draft`` and return its view, or the view of the text that ``attempt``'s key created.

    Raises NotFound or Gone for the parent; OrderUnusable, AlreadyReviewed; ContentDeleted for a
    text that the key created and that was deleted since; KeyReused; MysqlDown and RedisDown, after
    which the same key is safe to repeat.
    """
    if attempt and (created := idempotency.find(draft.author_id, attempt)):
        return _read_created(draft.author_id, Target(*created))
    queries.require_parent(draft)
    _require_used_order(draft)
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


def create_hidden(draft: Draft) -> int:
    """Store a post that only its author may read, and return its id. It is not announced: no cache
    can have it. Raises RedisDown, MysqlDown."""
    target = Target(draft.type, ids.new_id())

    def work(cursor: Cursor) -> None:
        _write(cursor, target, draft, None)
        mysql_store.set_hidden(cursor, target, draft.author_id)

    mysql.run_in_transaction(work)
    return target.id


def edit(
    post_id: int, actor_id: int, changes: Mapping[str, Any], tags: Collection[str] | None = None
) -> ContentView:
    """Change fields of a post of the actor (title, body, images) and return its view. ``tags``: of
    the versions that may be changed; without them the last of concurrent edits wins. A repeat
    changes nothing. Raises ContentMissing, ContentDeleted, NotAuthor, ChangedMeanwhile, MysqlDown,
    RedisDown."""

    def work(cursor: Cursor, text: Text) -> Text:
        edited = replace(text, **changes)
        if edited == text:
            return text
        check_tag(tags, tag_version(text.version), "", "post")
        return mysql_store.edit(cursor, edited)

    target = Target("post", post_id)
    _require_author(queries.read_stored(target).text, actor_id)
    [view] = queries.build_views([_change(target, work)], actor_id)
    return view


def hide(target: Target, moderator_id: int, key_id: str | None = None) -> None:
    """Hide a text from all but its author. ``key_id``: the key that acts for the moderator. Safe to
    repeat. Raises ContentMissing, ContentDeleted, MysqlDown."""

    def work(cursor: Cursor, text: Text) -> Text:
        if text.hidden:
            # Else it is shown when its author opens the closed account again.
            mysql_store.take_hiding_over(cursor, target, moderator_id)
            return text
        _append(cursor, "hidden", text, moderator_id, key_id)
        return mysql_store.set_hidden(cursor, target, moderator_id, key_id)

    _change(target, work)
    fields = {"target": str(target), "operator_id": moderator_id, "key_id": key_id}
    record("content_hidden", {"content_hidden": 1}, **fields)


def show(target: Target, moderator_id: int, key_id: str | None = None) -> None:
    """Show a hidden text again. Safe to repeat. Raises as ``hide``."""

    def work(cursor: Cursor, text: Text) -> Text:
        if not text.hidden:
            return text
        _append(cursor, "shown", text, moderator_id, key_id)
        return mysql_store.set_hidden(cursor, target, None)

    _change(target, work)
    record("content_shown", target=str(target), operator_id=moderator_id, key_id=key_id)


def delete(target: Target, actor_id: int) -> None:
    """Delete a text of the actor. The reactions that it received stay counted. Raises
    ContentMissing, NotAuthor; ContentDeleted if it is already deleted; MysqlDown."""
    text, deleted = queries.read_stored(target)
    if text.author_id != actor_id:
        queries.require_not_deleted(target, deleted)
        _require_author(text, actor_id)
    announced = False
    if not deleted:
        announced = announce.announce_write(*target)
        deleted = not mysql.run_in_transaction(lambda cursor: _delete(cursor, text, announced))
    # Also if it was deleted before: that request may have ended before its projection.
    _project(StoredText(text, deleted=True), announced)
    queries.require_not_deleted(target, deleted)


def _require_used_order(draft: Draft) -> None:
    """Raise OrderUnusable unless the order of a review, if it has one, was used by its author in
    the shop: for ever, so no lock is needed. One statement. Raises MysqlDown."""
    if draft.order_id is not None and draft.parent_id is not None:
        order = draft.order_id, draft.author_id, draft.parent_id
        if not any(may_review(*order) for _, may_review in offers("may_review")):
            raise OrderUnusable(f"You have used no order {draft.order_id} in this shop.")


def _require_author(text: Text, actor_id: int) -> None:
    if text.author_id != actor_id:
        raise NotAuthor(f"{text.type.capitalize()} {text.id} belongs to another user.")


def _change(target: Target, work: Callable[[Cursor, Text], Text]) -> Text:
    """Run ``work`` on a locked live text in one transaction, project and return its result."""

    def locked(cursor: Cursor) -> Text:
        _pass_barrier(cursor, target.type)
        stored = mysql_store.lock(cursor, target)
        if stored is None:
            raise queries.missing(target)
        queries.require_not_deleted(target, stored.deleted)
        return work(cursor, stored.text)

    announced = announce.announce_write(*target)
    text = mysql.run_in_transaction(locked)
    _project(StoredText(text, deleted=False), announced)
    return text


def _write(
    cursor: Cursor,
    target: Target,
    draft: Draft,
    attempt: IdempotentRequest | None,
    announced: bool = False,
) -> Text | None:
    """Insert the text; return None if the attempt's key is already taken. The counter and the
    unread counter are last, so that their rows are locked for the shortest time."""
    post_author = 0
    _pass_barrier(cursor, draft.type)
    if attempt and not idempotency.claim(cursor, draft.author_id, attempt, target):
        return None
    if draft.type == "comment" and draft.parent_id is not None:
        existence, post_author = mysql_store.lock_post(cursor, draft.parent_id)
        queries.require_existing(Target("post", draft.parent_id), existence)
    if draft.type == "review" and draft.parent_id is not None:
        reviewed = queries.require_reviewed(draft.parent_id)
        shop = Target("shop", draft.parent_id)
        queries.require_existing(shop, reviewed.lock(cursor, shop.id))
        if not mysql_store.take_review_slot(cursor, target.id, draft):
            raise AlreadyReviewed
    text = mysql_store.insert(cursor, target.id, draft)
    _append(cursor, "created", text, text.author_id)
    _count(cursor, text, 1, announced)
    if text.type == "comment" and text.parent_id is not None:
        _notify(cursor, text, text.parent_id, post_author, announced)
    return text


def _pass_barrier(cursor: Cursor, content_type: str) -> None:
    """Pass the barrier of the event log, which has comments only."""
    if content_type == "comment":
        append_events.pass_barrier(cursor)


def _append(
    cursor: Cursor, state: str, text: Text, actor_id: int, key_id: str | None = None
) -> None:
    """Append what happened to a comment to the event log. ``key_id``: the key that acted for the
    actor."""
    if text.type == "comment" and text.parent_id is not None:
        target = "post", text.parent_id
        event = EventDraft(f"comment.{state}", actor_id, target, text.id, key_id=key_id)
        append_events.append(cursor, [event])


def _notify(cursor: Cursor, comment: Text, post_id: int, post_author: int, announced: bool) -> None:
    """Notify for the author of the post. As ``_count``, an announced comment does not wait."""
    move = move_of(post_author, post_id, comment.author_id, on=True)
    changes = Changes([move], notifies=not switches.current().notifications_stopped)
    is_locked = not announced or participants.try_lock(cursor, changes)
    [sequence] = participants.run(cursor, changes) if is_locked else [None]
    if sequence != 0:
        mysql_store.set_notified_sequences(cursor, {comment.id: sequence})


def _delete(cursor: Cursor, text: Text, announced: bool = False) -> bool:
    _pass_barrier(cursor, text.type)
    if not mysql_store.mark_deleted(cursor, text.target):
        return False
    _append(cursor, "deleted", text, text.author_id)
    if text.type == "review":
        mysql_store.release_review_slot(cursor, text.id)
    _count(cursor, text, -1, announced)
    if text.type == "comment" and text.parent_id is not None:
        recipient, notified_at = mysql_store.read_notified(cursor, text.id)
        if notified_at:
            move = move_of(
                recipient, text.parent_id, text.author_id, on=False, notified_at=notified_at
            )
            participants.run(cursor, Changes([move], notifies=False))
    return True


def _count(cursor: Cursor, draft: Draft, delta: int, announced: bool = False) -> None:
    """Add ``delta`` to the counter of posts, comments or reviews.

    A comment does not wait for the counter of its post, which consumers of likes may lock for
    longer than a request may take: if the write is ``announced``, its refresh adds the delta.
    """
    if draft.type == "post":
        counters.add_to_users(cursor, {(draft.author_id,): {"posts_total": delta}})
    elif draft.type == "review" and draft.parent_id is not None:
        change = ShopCounter(delta, delta * (draft.score or 0))
        totals.add(cursor, draft.parent_id, change)
    elif draft.type == "comment" and draft.parent_id is not None:
        key = "post", draft.parent_id, counters.COMMENT
        if announced and isinstance(draft, Text) and not counters.try_lock_target(cursor, key):
            mysql_store.delay_count(cursor, draft.parent_id, draft.id, delta)
        else:
            counters.add_to_targets(cursor, {key: counters.CounterDelta(delta)})


def _read_created(author_id: int, target: Target) -> ContentView:
    text, deleted = queries.read_stored(target)
    # The client may repeat the request because the first one ended before its projection.
    _project(StoredText(text, deleted), announced=False)
    queries.require_not_deleted(target, deleted)
    [view] = queries.build_views([text], author_id)
    return view


def _project(stored: StoredText, announced: bool) -> None:
    """Project a committed text. Failures are only recorded: the announced refresh repeats the
    projection, or the stale one expires."""
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

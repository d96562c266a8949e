"""Project texts and their counts from MySQL to Redis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from plaza.core import counters
from plaza.core.reactions import Target, hydration
from plaza.core.reactions.kinds import CONTENT_TYPES
from plaza.core.switches import refresh as switches_refresh
from plaza.core.targets import Visibility, markers
from plaza.core.targets.types import TypedId
from plaza.infra.mysql import mysql, participants
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.mysql.participants import Changes
from plaza.infra.queues import announcements
from plaza.infra.runtime.observability import record
from plaza.social.content import mysql_store, publish, redis_store
from plaza.social.content.model import StoredText, move_of


def refresh_texts(targets: Sequence[TypedId]) -> None:
    """Project the posts, comments and reviews among announced ``targets``."""
    stored = mysql_store.read({Target(*target) for target in targets if target[0] in CONTENT_TYPES})
    _apply_delayed_counts(
        {t.parent_id for t, _ in stored.values() if t.type == "comment" and t.parent_id}
    )
    _notify_pending([t.id for t, deleted in stored.values() if t.type == "comment" and not deleted])
    project_texts(stored.values())
    publish.publish_missing(
        [text.id for text, deleted in stored.values() if text.type == "post" and not deleted]
    )


def _apply_delayed_counts(post_ids: Iterable[int]) -> None:
    """Add the deltas of comments that were written while the counter of their post was locked. One
    transaction a post that has any. Raises MysqlDown."""

    def add(cursor: Cursor, post_id: int) -> int:
        delta = mysql_store.drain_delayed_counts(cursor, post_id)
        if delta:
            key = "post", post_id, counters.COMMENT
            counters.add_to_targets(cursor, {key: counters.CounterDelta(delta)})
        return delta

    for post_id in mysql_store.find_delayed_counts(post_ids):
        delta = mysql.run_in_transaction(lambda cursor, post_id=post_id: add(cursor, post_id))  # type: ignore[misc]
        record(
            "delayed_comments_counted", {"delayed_comments_counted": abs(delta)}, post_id=post_id
        )


def _notify_pending(comment_ids: Sequence[int]) -> None:
    """Notify for comments that were written while the unread counter of the post's author was
    locked. One statement, and one transaction a post that has any. Raises MysqlDown."""

    def work(
        cursor: Cursor, post_id: int, author_id: int, ids: Sequence[int], notifies: bool
    ) -> int:
        author_of = mysql_store.lock_pending_notifications(cursor, ids)
        if author_of:
            moves = [move_of(author_id, post_id, by, on=True) for by in author_of.values()]
            sequences = participants.run(cursor, Changes(moves, notifies=notifies))
            mysql_store.set_notified_sequences(cursor, dict(zip(author_of, sequences, strict=True)))
        return len(author_of)

    pending = mysql_store.find_pending_notifications(comment_ids)
    notifies = bool(pending) and not switches_refresh.read().notifications_stopped
    for (post_id, author_id), ids in pending.items():
        notified = mysql.run_in_transaction(
            partial(work, post_id=post_id, author_id=author_id, ids=ids, notifies=notifies)
        )
        record(
            "delayed_comments_notified", {"delayed_comments_notified": notified}, post_id=post_id
        )


def project_texts(stored: Iterable[StoredText]) -> None:
    """Project texts that were created, changed or deleted; tombstones and the visibility for the
    gate are written first. Groups of deleted texts are read. At most six statements, a transaction
    for each author of deleted texts with an open group, and nine round trips to Redis. Raises
    RedisDown, MysqlDown."""
    texts = list(stored)
    live = [text for text, deleted in texts if not deleted]
    if deleted := [text.target for text, deleted in texts if deleted]:
        hydration.tombstone(deleted)
    # New texts are visible, and their targets not loaded.
    if changed := [text for text in live if text.version > 1]:
        hydration.set_visibility(
            {t.target: Visibility(t.version, t.author_id if t.hidden else None) for t in changed}
        )
    participants.clear(
        (text.type, text.id, text.author_id) for text, is_deleted in texts if is_deleted
    )
    redis_store.store_texts(texts)
    redis_store.drop_lists(text for text, _ in texts)
    markers.mark_all_created([text.target for text in live])
    counters.refresh_projections(
        sorted({text.author_id for text, _ in texts if text.type == "post"}),
        sorted({text.parent_id for text, _ in texts if text.type == "comment" and text.parent_id}),
    )
    recipients = mysql_store.find_recipients(t.id for t, _ in texts if t.type == "comment")
    recipients += [text.author_id for text, is_deleted in texts if is_deleted]
    if recipients:
        participants.refresh(sorted(set(recipients)))
        announcements.announce_notified(set(recipients))

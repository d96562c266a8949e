"""Change unread counters in the transaction of what is new: reactions, comments, and their
deletions.

The caller has locked the counters of the content, if it locks them. A statement count is given for
a transaction whose unread counters exist; a first notification of a user costs three more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.notifications.unread import mysql_lists, mysql_store
from plaza.notifications.unread.model import (
    COMMENT,
    LIKE,
    GroupKey,
    Move,
    Silence,
    apply_moves,
)
from plaza.notifications.unread.mysql_store import recount_blocks as recount_blocks

_POST = "post"
Rows = Sequence[Sequence[mysql.Row]]
"""The rows of each SELECT of ``read``."""


def move(cursor: Cursor, moves: Sequence[Move], *, notifies: bool) -> Sequence[int]:
    """Notify and take back; return the sequence that each row keeps. ``notifies``: False lets
    nothing notify. Four statements, two if nothing changes."""
    writes, sequences = decide(read(cursor, moves, notifies=notifies), moves, notifies=notifies)
    for write in writes:
        mysql.send(cursor, write)
    return sequences


def read(cursor: Cursor, moves: Collection[Move], *, notifies: bool) -> Rows:
    """Lock the unread counters of ``moves``, which are created if they are missing, then read their
    groups, and blocks; return the rows. One packet, one more for a first notification; none without
    moves."""
    pairs = [(m.group.user_id, m.actor_id) for m in moves if m.on] if notifies else []
    return _read(cursor, {m.group for m in moves}, pairs) if moves else []


def _read(cursor: Cursor, groups: Collection[GroupKey], pairs: Collection[tuple[int, int]]) -> Rows:
    users = {group.user_id for group in groups}
    selects = [
        mysql_store.select_unread(users, "FOR UPDATE"),
        mysql_store.select_around(groups, pairs),
    ]
    rows = mysql.read_all(cursor, selects)
    if missing := users - mysql_store.unread_of(rows[0]).keys():
        mysql_store.create_unread(cursor, missing)
        rows = mysql.read_all(cursor, selects)  # another transaction may have created them
    return rows


def decide(
    rows: Rows, moves: Collection[Move], *, notifies: bool
) -> tuple[Sequence[str], Sequence[int]]:
    """Return the writes of ``moves``, and the sequence that the row of each keeps. ``rows``: of
    ``read``."""
    if not moves:
        return [], []
    groups, deleted, blocked = mysql_store.around_of(rows[1])
    silence = Silence(not notifies, deleted, blocked)
    moved = apply_moves(moves, mysql_store.unread_of(rows[0]), groups, silence)
    return mysql_store.render_writes(moved.groups, moved.users), moved.sequences


def notify_comment(
    cursor: Cursor, recipient: int, post_id: int, author_id: int, *, notifies: bool, wait: bool
) -> int | None:
    """Return the sequence of a new comment: 0 if it does not notify, None if the unread counter is
    locked or new. Then the refresh notifies it (``notify_comments``); ``wait`` waits instead. Four
    statements."""
    if not notifies or author_id == recipient:
        return 0
    if not wait and not mysql_store.try_lock_unread(cursor, recipient):
        return None
    return notify_comments(cursor, recipient, post_id, [author_id], notifies=notifies)[0]


def notify_comments(
    cursor: Cursor, recipient: int, post_id: int, author_ids: Sequence[int], *, notifies: bool
) -> Sequence[int]:
    """Return the sequences of pending comments on a post, whose rows are locked. Four statements,
    and waits for the unread counter."""
    key = _key_of_comments(recipient, post_id)
    moves = [Move(key, author_id, True, 0) for author_id in author_ids]
    return move(cursor, moves, notifies=notifies and set(author_ids) != {recipient})


def take_back_comment(
    cursor: Cursor, recipient: int, post_id: int, author_id: int, notified_at: int
) -> None:
    """Take back the notification of a comment, whose row is locked. Waits for the unread counter.
    Four statements."""
    key = _key_of_comments(recipient, post_id)
    move(cursor, [Move(key, author_id, False, notified_at)], notifies=False)


def clear(deleted: Iterable[tuple[str, int, int]]) -> None:
    """After texts (type, id, author) were deleted, read their groups. One statement, and one
    transaction of four for each author of a text with an open group. Safe to repeat. Raises
    MysqlDown."""
    for user_id, subjects in mysql_lists.find_open(deleted).items():
        keys = [
            GroupKey(user_id, kind, *subject)
            for subject in subjects
            for kind in ((LIKE, COMMENT) if subject[0] == _POST else (LIKE,))
        ]
        mysql.run_in_transaction(partial(_clear, keys=keys))


def lock(cursor: Cursor, user_id: int) -> None:
    """Lock the unread counter of a user before the user's blocks change. One statement; two more
    without an unread counter."""
    mysql_store.lock_unread(cursor, [user_id])


def _clear(cursor: Cursor, keys: Sequence[GroupKey]) -> None:
    locked, around = _read(cursor, keys, ())
    [(user_id, counter)] = mysql_store.unread_of(locked).items()
    groups, _, _ = mysql_store.around_of(around)
    cleared = {key: group for key, group in groups.items() if group.is_open or group.fresh}
    if cleared:
        unread = sum(group.fresh > 0 for group in cleared.values())
        for group in cleared.values():
            group.close(counter.sequence)
        mysql_store.store(cursor, cleared, {user_id: -unread})


def _key_of_comments(recipient: int, post_id: int) -> GroupKey:
    return GroupKey(recipient, COMMENT, _POST, post_id)

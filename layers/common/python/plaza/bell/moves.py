"""Change bells in the transaction of what is new: reactions, comments, and their deletions.

The caller has locked the counters of the content, if it locks them. A statement count is given for
a transaction whose bells exist; a first ring of a user costs two more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from plaza.bell import mysql_store
from plaza.bell.model import (
    COMMENT,
    LIKE,
    Bell,
    GroupKey,
    Move,
    Silence,
    apply_moves,
)
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor

_POST = "post"


def move(cursor: Cursor, moves: Sequence[Move], *, rings: bool) -> list[int]:
    """Ring and take back; return the position that each row keeps. ``rings``: False lets nothing
    ring. Four statements, two if nothing changes."""
    pending = PendingMoves(cursor, {m.group.user_id for m in moves})
    pending.request_groups(moves, rings=rings)
    pending.receive_groups()
    return pending.apply()


class PendingMoves:
    """``move`` in steps: while MySQL works on one, the caller prepares other statements. They may
    be sent after ``receive_groups``.

    ``user_ids``: whose bells may change, at least one; those that exist are locked.
    """

    def __init__(self, cursor: Cursor, user_ids: Iterable[int]) -> None:
        self._cursor = cursor
        self._moves: Sequence[Move] = ()
        mysql_store.request_locks(cursor, user_ids)

    def request_groups(self, moves: Sequence[Move], *, rings: bool) -> None:
        """Create the bells that ``moves`` lack, and send the statement that reads their groups."""
        self._moves, self._rings = moves, rings
        self._bells = mysql_store.receive_locked(self._cursor, {m.group.user_id for m in moves})
        if moves:
            _request_around(self._cursor, self._bells, moves, rings)

    def receive_groups(self) -> None:
        """Read the groups."""
        if self._moves:
            self._around = mysql_store.receive_around(self._cursor)

    def apply(self) -> list[int]:
        """Store the moves; return the position that each row keeps."""
        if not self._moves:
            return []
        return _store(self._cursor, self._bells, self._around, self._moves, self._rings)


def ring_comment(
    cursor: Cursor, recipient: int, post_id: int, author_id: int, *, rings: bool, wait: bool
) -> int | None:
    """Return the position of a new comment: 0 if it does not ring, None if the bell is locked or
    new. Then the refresh rings it (``ring_comments``); ``wait`` waits instead. Four statements."""
    if not rings or author_id == recipient:
        return 0
    if wait:
        bells = mysql_store.lock_bells(cursor, [recipient])
    elif bell := mysql_store.try_lock_bell(cursor, recipient):
        bells = {recipient: bell}
    else:
        return None
    key = _key_of_comments(recipient, post_id)
    return _apply(cursor, bells, [Move(key, author_id, True, 0)], rings)[0]


def ring_comments(
    cursor: Cursor, recipient: int, post_id: int, author_ids: Sequence[int], *, rings: bool
) -> list[int]:
    """Return the positions of pending comments on a post, whose rows are locked. Four statements,
    and waits for the bell."""
    key = _key_of_comments(recipient, post_id)
    moves = [Move(key, author_id, True, 0) for author_id in author_ids]
    return move(cursor, moves, rings=rings and set(author_ids) != {recipient})


def take_back_comment(
    cursor: Cursor, recipient: int, post_id: int, author_id: int, rang_at: int
) -> None:
    """Take back the ring of a comment, whose row is locked. Waits for the bell. Four statements."""
    key = _key_of_comments(recipient, post_id)
    move(cursor, [Move(key, author_id, False, rang_at)], rings=False)


def clear(deleted: Iterable[tuple[str, int, int]]) -> None:
    """After texts (type, id, author) were deleted, read their groups. One statement, and one
    transaction of four for each author of a text with an open group. Safe to repeat. Raises
    MysqlDown."""
    for user_id, subjects in mysql_store.find_open(deleted).items():
        keys = [
            GroupKey(user_id, kind, *subject)
            for subject in subjects
            for kind in ((LIKE, COMMENT) if subject[0] == _POST else (LIKE,))
        ]
        mysql.run_in_transaction(partial(_clear, keys=keys))


def lock(cursor: Cursor, user_id: int) -> None:
    """Lock the bell of a user before the user's blocks change. One statement; two more without a
    bell."""
    mysql_store.lock_bells(cursor, [user_id])


def recount_blocks(cursor: Cursor, user_id: int) -> None:
    """Count the blocks by a user whose bell is locked: actors are compared with the blocks of
    recipients that have some. One statement."""
    mysql_store.recount_blocks(cursor, user_id)


def _clear(cursor: Cursor, keys: Sequence[GroupKey]) -> None:
    user_id = keys[0].user_id
    bell = mysql_store.lock_bells(cursor, [user_id])[user_id]
    groups, _, _ = mysql_store.read_around(cursor, keys, ())
    cleared = {key: group for key, group in groups.items() if group.is_open or group.fresh}
    if cleared:
        unread = sum(group.fresh > 0 for group in cleared.values())
        for group in cleared.values():
            group.close(bell.position)
        mysql_store.store_groups(cursor, cleared)
        mysql_store.raise_bells(cursor, {user_id: -unread})


def _key_of_comments(recipient: int, post_id: int) -> GroupKey:
    return GroupKey(recipient, COMMENT, _POST, post_id)


def _apply(
    cursor: Cursor, bells: Mapping[int, Bell], moves: Sequence[Move], rings: bool
) -> list[int]:
    _request_around(cursor, bells, moves, rings)
    return _store(cursor, bells, mysql_store.receive_around(cursor), moves, rings)


def _request_around(
    cursor: Cursor, bells: Mapping[int, Bell], moves: Sequence[Move], rings: bool
) -> None:
    guarded = {user_id for user_id, bell in bells.items() if bell.blocking} if rings else set()
    mysql_store.request_around(
        cursor,
        {m.group for m in moves},
        {(m.group.user_id, m.actor_id) for m in moves if m.on and m.group.user_id in guarded},
    )


def _store(
    cursor: Cursor,
    bells: Mapping[int, Bell],
    around: mysql_store.Around,
    moves: Sequence[Move],
    rings: bool,
) -> list[int]:
    groups, deleted, blocked = around
    moved = apply_moves(moves, bells, groups, Silence(not rings, deleted, blocked))
    if moved.users:
        mysql_store.store_groups(cursor, moved.groups)
        mysql_store.raise_bells(cursor, moved.users)
    return moved.positions

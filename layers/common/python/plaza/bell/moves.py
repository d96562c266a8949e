"""Change bells in the transaction of what is new: reactions, comments, and their deletions.

The caller has locked the counters of the content, if it locks them. A statement count is given for
a transaction whose bells exist; a first ring of a user costs three more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from plaza.bell import mysql_lists, mysql_store
from plaza.bell.model import COMMENT, LIKE, GroupKey, Move, Silence, apply_moves
from plaza.bell.mysql_store import recount_blocks as recount_blocks
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor

_POST = "post"
Rows = Sequence[Sequence[mysql.Row]]
"""The rows of each SELECT of ``read``."""


def move(cursor: Cursor, moves: Sequence[Move], *, rings: bool) -> Sequence[int]:
    """Ring and take back; return the position that each row keeps. ``rings``: False lets nothing
    ring. Four statements, two if nothing changes."""
    writes, positions = decide(read(cursor, moves, rings=rings), moves, rings=rings)
    for write in writes:
        mysql.send(cursor, write)
    return positions


def read(cursor: Cursor, moves: Collection[Move], *, rings: bool) -> Rows:
    """Lock the bells of ``moves``, which are created if they are missing, then read their groups,
    and blocks; return the rows. One packet, one more for a first ring; none without moves."""
    pairs = [(m.group.user_id, m.actor_id) for m in moves if m.on] if rings else []
    return _read(cursor, {m.group for m in moves}, pairs) if moves else []


def _read(cursor: Cursor, groups: Collection[GroupKey], pairs: Collection[tuple[int, int]]) -> Rows:
    users = {group.user_id for group in groups}
    selects = [
        mysql_store.select_bells(users, "FOR UPDATE"),
        mysql_store.select_around(groups, pairs),
    ]
    rows = mysql.read_all(cursor, selects)
    if missing := users - mysql_store.bells_of(rows[0]).keys():
        mysql_store.create_bells(cursor, missing)
        rows = mysql.read_all(cursor, selects)  # another transaction may have created them
    return rows


def decide(
    rows: Rows, moves: Collection[Move], *, rings: bool
) -> tuple[Sequence[str], Sequence[int]]:
    """Return the writes of ``moves``, and the position that the row of each keeps. ``rows``: of
    ``read``."""
    if not moves:
        return [], []
    groups, deleted, blocked = mysql_store.around_of(rows[1])
    silence = Silence(not rings, deleted, blocked)
    moved = apply_moves(moves, mysql_store.bells_of(rows[0]), groups, silence)
    return mysql_store.render_writes(moved.groups, moved.users), moved.positions


def ring_comment(
    cursor: Cursor, recipient: int, post_id: int, author_id: int, *, rings: bool, wait: bool
) -> int | None:
    """Return the position of a new comment: 0 if it does not ring, None if the bell is locked or
    new. Then the refresh rings it (``ring_comments``); ``wait`` waits instead. Four statements."""
    if not rings or author_id == recipient:
        return 0
    if not wait and not mysql_store.try_lock_bell(cursor, recipient):
        return None
    return ring_comments(cursor, recipient, post_id, [author_id], rings=rings)[0]


def ring_comments(
    cursor: Cursor, recipient: int, post_id: int, author_ids: Sequence[int], *, rings: bool
) -> Sequence[int]:
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
    for user_id, subjects in mysql_lists.find_open(deleted).items():
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


def _clear(cursor: Cursor, keys: Sequence[GroupKey]) -> None:
    locked, around = _read(cursor, keys, ())
    [(user_id, bell)] = mysql_store.bells_of(locked).items()
    groups, _, _ = mysql_store.around_of(around)
    cleared = {key: group for key, group in groups.items() if group.is_open or group.fresh}
    if cleared:
        unread = sum(group.fresh > 0 for group in cleared.values())
        for group in cleared.values():
            group.close(bell.position)
        mysql_store.store(cursor, cleared, {user_id: -unread})


def _key_of_comments(recipient: int, post_id: int) -> GroupKey:
    return GroupKey(recipient, COMMENT, _POST, post_id)

"""What reactions, comments, blocks and deletions do to unread counters: the participant of their
transactions (``infra.mysql.participants``).

An owner's own reactions and comments do not notify. The caller has locked the counters of the
content, if it locks them; then the unread counters are locked, in the order of the users.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from itertools import compress

from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.mysql.participants import Changes, GroupKey, Move, Rows, Writes
from plaza.notifications.notifications import mysql_lists, mysql_store
from plaza.notifications.notifications.model import COMMENT, LIKE, Silence, apply_moves
from plaza.notifications.notifications.queries import refresh_projections as refresh
from plaza.notifications.notifications.redis_store import unread_key as projection_key

__all__ = ["clear", "creates", "decide", "locks", "projection_key", "reads", "refresh"]

_POST = "post"


def reads(changes: Changes) -> Sequence[str]:
    """Return the SELECTs that lock the unread counters of recipients and blockers, and then read
    groups, deleted texts and blocks; none if nothing moves."""
    moves = [move for move in changes.moves if _is_moving(move, changes)]
    pairs = [(m.group.user_id, m.actor_id) for m in moves if m.on]
    return _select({move.group for move in moves}, pairs, changes.blockers)


def creates(changes: Changes, rows: Rows) -> str | None:
    """Return the INSERT of the unread counters that are missing in ``rows``."""
    missing = _users_of(changes) - mysql_store.unread_of(rows[0]).keys()
    return mysql_store.render_new(missing) if missing else None


def decide(changes: Changes, rows: Rows) -> Writes:
    """Return the writes of unread counters and groups, and the sequences of the moves' rows."""
    recounts = [mysql_store.render_recount(user_id) for user_id in sorted(changes.blockers)]
    if len(rows) == 1:
        return Writes(recounts)
    groups, deleted, blocked = mysql_store.around_of(rows[1])
    silence = Silence(not changes.notifies, deleted, blocked)
    moving = [_is_moving(move, changes) for move in changes.moves]
    moved = apply_moves(
        compress(changes.moves, moving), mysql_store.unread_of(rows[0]), groups, silence
    )
    moved_to = iter(moved.sequences)
    sequences = [
        next(moved_to) if is_moving else move.notified_at
        for move, is_moving in zip(changes.moves, moving, strict=True)
    ]
    return Writes(mysql_store.render_writes(moved.groups, moved.users) + recounts, sequences)


def locks(changes: Changes) -> str | None:
    """Return the SELECT that locks existing unread counters without a wait."""
    users = _users_of(changes)
    return mysql_store.select_nowait(users) if users else None


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


def _is_moving(move: Move, changes: Changes) -> bool:
    """Return whether a move may notify, or takes back what notified."""
    (user_id, *_), actor_id, on, notified_at = move
    return actor_id != user_id and (notified_at > 0 or (on and changes.notifies))


def _users_of(changes: Changes) -> set[int]:
    return {move.group.user_id for move in changes.moves if _is_moving(move, changes)}.union(
        changes.blockers
    )


def _select(
    groups: Collection[GroupKey],
    pairs: Collection[tuple[int, int]],
    blockers: Collection[int] = (),
) -> list[str]:
    users = {group.user_id for group in groups}.union(blockers)
    selects = [mysql_store.select_unread(users, "FOR UPDATE")] if users else []
    return [*selects, mysql_store.select_around(groups, pairs)] if groups else selects


def _clear(cursor: Cursor, keys: Sequence[GroupKey]) -> None:
    locked, around = mysql.read_all(cursor, _select(keys, ()))
    for user_id, counter in mysql_store.unread_of(locked).items():
        groups, _, _ = mysql_store.around_of(around)
        cleared = {key: group for key, group in groups.items() if group.is_open or group.fresh}
        if cleared:
            unread = sum(group.fresh > 0 for group in cleared.values())
            for group in cleared.values():
                group.close(counter.sequence)
            mysql_store.store(cursor, cleared, {user_id: -unread})

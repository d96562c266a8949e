"""Mark groups as read, up to what a device displayed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.mysql.participants import GroupKey
from plaza.infra.runtime.errors import Unavailable
from plaza.notifications.notifications import mysql_lists, mysql_recount, mysql_store, queries
from plaza.notifications.notifications.model import Group, UnreadState


class Marked(NamedTuple):
    """The unread counter after a mark, and how many groups a repeat would mark."""

    state: UnreadState
    left: int


def mark_read(user_id: int, version: int, keys: Sequence[GroupKey] | None = None) -> Marked:
    """Mark what a list displayed at ``version`` as read: of ``keys``, or all, 500 at most.

    A group that notified since keeps what notified after the list. A version of another epoch of
    MySQL, and one that no list had, such as -1, mark nothing. One transaction of five statements,
    one more if something is left, and one if another list replaced a checkpoint; then the
    projection. Safe to repeat. Raises MysqlDown.
    """

    def work(cursor: Cursor) -> Marked:
        epoch = mysql_lists.read_epoch(cursor)
        counter = mysql_store.lock_existing(cursor, [user_id]).get(user_id)
        sequence, at = counter.sequence if counter else 0, version - epoch
        if counter is None or not 0 <= at <= sequence:
            return Marked(UnreadState(epoch + sequence, counter.unread if counter else 0), 0)
        listed, left = mysql_lists.find_marked(cursor, user_id, at, keys), 0
        overtaken = _choose_counted(listed, at)
        groups = {
            key: group for key, group, _ in listed if key in overtaken or not group.is_overtaken(at)
        }
        if groups:
            was_unread = sum(group.fresh > 0 for group in groups.values())
            notified = (
                mysql_recount.count_notified_after(cursor, at, overtaken) if overtaken else {}
            )
            for key, group in groups.items():
                group.mark(at, notified.get(key, 0))
            change = sum(group.fresh > 0 for group in groups.values()) - was_unread
            mysql_store.store(cursor, groups, {user_id: change})
            counter.sequence, counter.unread = (
                sequence + 1,
                counter.unread + change,
            )
        if len(listed) == mysql_lists.MAX_MARKED or len(groups) < len(listed):
            left = mysql_lists.count_marked(cursor, user_id, at, keys)
        return Marked(UnreadState(epoch + counter.sequence, counter.unread), left)

    marked = mysql.run_in_transaction(work)
    with suppress(Unavailable):  # the answer has the state, and the projection expires
        queries.refresh_projections([user_id])
    return marked


def _choose_counted(listed: Sequence[tuple[GroupKey, Group, int]], at: int) -> set[GroupKey]:
    """Return the groups whose checkpoint another list replaced, as many as one mark may count."""
    chosen, rows = set(), 0
    for key, group, of_group in listed:
        if group.is_overtaken(at) and rows + of_group <= mysql_lists.MAX_COUNTED_ROWS:
            chosen.add(key)
            rows += of_group
    return chosen

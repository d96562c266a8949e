"""List the groups of a user, and store what was displayed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.notifications.notifications import mysql_lists, mysql_store
from plaza.notifications.notifications.model import (
    Group,
    GroupCursor,
    ListedGroup,
    UnreadCounter,
    UnreadState,
)


class GroupPage(NamedTuple):
    """A page of groups with the unread counter of the same instant, and the cursor of the next page
    (None: the end)."""

    state: UnreadState
    groups: list[ListedGroup]
    last: GroupCursor | None


def list_groups(
    user_id: int, after: GroupCursor | None, limit: int, *, is_displayed: bool
) -> GroupPage:
    """Return a page of groups, the newest notification first.

    ``is_displayed``: store the sequence as the checkpoint of its groups, so that a later mark reads
    what is on the page, whatever notified since; False reads one snapshot without a lock. One
    transaction of four statements. Raises MysqlDown.
    """

    def display(cursor: Cursor) -> GroupPage:
        epoch = mysql_lists.read_epoch(cursor)
        counter = mysql_store.lock_existing(cursor, [user_id]).get(user_id)
        page = mysql_lists.read_page(cursor, user_id, after, limit + 1) if counter else []
        checked = {
            listed.key: group
            for listed, group in page[:limit]
            if counter and group.display(counter.sequence)
        }
        mysql_store.store(cursor, checked)
        return _page_of(epoch, counter, page, limit)

    def read(cursor: Cursor) -> GroupPage:
        epoch, counter = mysql_lists.read_epoch(cursor), mysql_store.read_unread(cursor, user_id)
        page = mysql_lists.read_page(cursor, user_id, after, limit + 1)
        return _page_of(epoch, counter, page, limit)

    return mysql.run_in_transaction(display) if is_displayed else mysql.run_in_snapshot(read)


def _page_of(
    epoch: int, counter: UnreadCounter | None, page: Sequence[tuple[ListedGroup, Group]], limit: int
) -> GroupPage:
    groups = [listed for listed, _ in page[:limit]]
    last = groups[-1].cursor if len(page) > limit else None
    sequence, unread = (counter.sequence, counter.unread) if counter else (0, 0)
    return GroupPage(UnreadState(epoch + sequence, unread), groups, last)

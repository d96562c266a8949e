"""List the groups of a user, and store what was displayed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from plaza.bell import mysql_lists, mysql_store
from plaza.bell.model import Bell, BellState, Group, GroupPosition, ListedGroup
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor


class GroupPage(NamedTuple):
    """A page of groups with the bell of the same instant, and the position after which the next
    page begins (None: the end)."""

    state: BellState
    groups: list[ListedGroup]
    last: GroupPosition | None


def list_groups(
    user_id: int, after: GroupPosition | None, limit: int, *, is_displayed: bool
) -> GroupPage:
    """Return a page of groups, the newest ring first.

    ``is_displayed``: store the position as the checkpoint of its groups, so that a later mark reads
    what is on the page, whatever rang since; False reads one snapshot without a lock. One
    transaction of four statements. Raises MysqlDown.
    """

    def display(cursor: Cursor) -> GroupPage:
        epoch = mysql_lists.read_epoch(cursor)
        bell = mysql_store.lock_existing(cursor, [user_id]).get(user_id)
        page = mysql_lists.read_page(cursor, user_id, after, limit + 1) if bell else []
        checked = {
            listed.key: group
            for listed, group in page[:limit]
            if bell and group.display(bell.position)
        }
        mysql_store.store(cursor, checked)
        return _page_of(epoch, bell, page, limit)

    def read(cursor: Cursor) -> GroupPage:
        epoch, bell = mysql_lists.read_epoch(cursor), mysql_store.read_bell(cursor, user_id)
        page = mysql_lists.read_page(cursor, user_id, after, limit + 1)
        return _page_of(epoch, bell, page, limit)

    return mysql.run_in_transaction(display) if is_displayed else mysql.run_in_snapshot(read)


def _page_of(
    epoch: int, bell: Bell | None, page: Sequence[tuple[ListedGroup, Group]], limit: int
) -> GroupPage:
    groups = [listed for listed, _ in page[:limit]]
    last = groups[-1].position if len(page) > limit else None
    position, unread = (bell.position, bell.unread) if bell else (0, 0)
    return GroupPage(BellState(epoch + position, unread), groups, last)

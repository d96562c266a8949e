"""The unread counter of a user in tests: its switch, its rows, and its invariants."""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

from local.audit.unread import find_wrong_unread
from plaza.core.switches import change_switches
from plaza.infra.mysql import mysql
from plaza.infra.mysql.participants import GroupKey
from plaza.infra.runtime.settings import settings
from plaza.notifications.notifications import list_groups, mark_read
from plaza.notifications.notifications.list_groups import GroupPage
from plaza.notifications.notifications.mark_read import Marked

OWNER = 99


class Shown(NamedTuple):
    """A group in MySQL."""

    fresh: int
    read_sequence: int
    changed: int
    shown_sequence: int
    fresh_after: int
    is_open: int


def turn_on() -> None:
    """Let new reactions and comments notify from here to the end of the test."""
    _switch(stopped=False)


def turn_off() -> None:
    _switch(stopped=True)


def _switch(*, stopped: bool) -> None:
    version = change_switches.read_newest().version
    change_switches.replace_switches(version, {"notifications_stopped": stopped}, "a test", 1)


def unread(user_id: int = OWNER) -> tuple[int, int]:
    """Return (sequence, unread) of an unread counter."""
    rows = mysql.fetch_all(
        "SELECT sequence, unread FROM unread_counter WHERE user_id = %s", (user_id,)
    )
    return rows[0] if rows else (0, 0)


def group(kind: str = "like", subject: tuple[str, int] = ("post", 11), user: int = OWNER) -> Shown:
    """Return a group."""
    [row] = mysql.fetch_all(
        "SELECT fresh, read_sequence, changed, shown_sequence, fresh_after, is_open"
        " FROM notification_group"
        " WHERE user_id = %s AND kind = %s AND subject_type = %s AND subject_id = %s",
        (user, kind, *subject),
    )
    return Shown(*row)


def display(user_id: int = OWNER, limit: int = 50) -> GroupPage:
    """Display the first page of the list."""
    return list_groups.list_groups(user_id, None, limit, is_displayed=True)


def mark(page: GroupPage, user_id: int = OWNER, keys: list[GroupKey] | None = None) -> Marked:
    """Mark what a page displayed."""
    return mark_read.mark_read(user_id, page.state.version, keys)


def check_unread() -> None:
    """Assert UNREAD, FRESH, FRESH_AFTER, OPEN, BOUNDS and OWN for all users."""
    database = settings().mysql.database
    with (
        closing(mysql.connect_dedicated(database=database)) as connection,
        connection.cursor() as cursor,
    ):
        assert list(find_wrong_unread(cursor)) == []

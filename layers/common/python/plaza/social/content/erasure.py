"""Delete the texts of an erased user, and what their rows say; hide the texts of a closed account.

The author hides the texts of a closed account, so that a moderator's stay hidden when it
opens again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from plaza.core.reactions import Target
from plaza.infra.runtime.clock import Deadline
from plaza.social.content import commands, mysql_store
from plaza.social.content.model import ContentDeleted

_PAGE = 1_000


def erase(user_id: int, deadline: Deadline) -> int:
    """Return how many texts were deleted or blanked; 0: none is left. A text is deleted as its
    author deletes it. Ends at the deadline. Safe to repeat. Raises MysqlDown, RedisDown."""
    deleted = _change_all(
        lambda: mysql_store.find_live_of_author(user_id, _PAGE),
        lambda target: commands.delete(target, user_id),
        deadline,
    )
    return (
        deleted if deadline.has_passed else deleted + mysql_store.blank_deleted_of_author(user_id)
    )


def hide(user_id: int, deadline: Deadline) -> int:
    """Hide the texts of a closed account; return how many. Ends at the deadline. Safe to repeat.
    Raises MysqlDown."""
    return _change_all(
        lambda: mysql_store.find_visible_of_author(user_id, _PAGE),
        lambda target: commands.hide(target, user_id),
        deadline,
    )


def show(user_id: int, since: datetime, deadline: Deadline) -> int:
    """Show the texts of a reopened account that its closing hid, ``since`` then; return how many.
    Ends at the deadline. Safe to repeat. Raises MysqlDown."""
    return _change_all(
        lambda: mysql_store.find_hidden_by_author(user_id, since, _PAGE),
        lambda target: commands.show(target, user_id),
        deadline,
    )


def _change_all(
    find: Callable[[], list[Target]], change: Callable[[Target], None], deadline: Deadline
) -> int:
    changed = 0
    while targets := find():
        for target in targets:
            if deadline.has_passed:
                return changed
            with suppress(ContentDeleted):
                change(target)
            changed += 1
    return changed

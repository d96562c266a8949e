"""Delete the texts of an erased user, and what their rows say."""

from __future__ import annotations

from contextlib import suppress

from plaza.content import commands, mysql_store
from plaza.content.model import ContentDeleted
from plaza.infra.runtime.clock import Deadline

_PAGE = 100


def erase(user_id: int, deadline: Deadline) -> int:
    """Return how many texts were deleted or blanked; 0: none is left. A text is deleted as its
    author deletes it. Ends at the deadline. Safe to repeat. Raises MysqlDown, RedisDown."""
    deleted = 0
    while targets := mysql_store.find_live_of_author(user_id, _PAGE):
        for target in targets:
            if deadline.has_passed:
                return deleted
            with suppress(ContentDeleted):
                commands.delete(target, user_id)
            deleted += 1
    return deleted + mysql_store.blank_deleted_of_author(user_id)

"""The bell: what is new for a user, counted exactly and in the transaction of what is new.

Owns the tables bell and bell_group, and the projections of bells in Redis. The consumer of
reactions and the commands of texts call ``moves``; lists and marks are ``list_groups`` and
``mark_read``. See docs/notifications.md.
"""

from plaza.bell.model import (
    Bell,
    BellState,
    Group,
    GroupKey,
    GroupPosition,
    ListedGroup,
    Move,
)

__all__ = [
    "Bell",
    "BellState",
    "Group",
    "GroupKey",
    "GroupPosition",
    "ListedGroup",
    "Move",
    "erasure",
    "export",
    "inspection",
    "list_groups",
    "mark_read",
    "moves",
    "purge",
    "queries",
    "recount",
]

"""The unread counter: what is new for a user, counted exactly and in the transaction of what is
new.

Owns the tables unread_counter and notification_group, and the projections of unread counters in
Redis. The consumer of reactions and the commands of texts call ``participant``; lists and marks are
``list_groups`` and ``mark_read``. See docs/notifications.md.
"""

from plaza.notifications.unread.model import (
    Group,
    GroupCursor,
    ListedGroup,
    UnreadCounter,
    UnreadState,
)

__all__ = [
    "Group",
    "GroupCursor",
    "ListedGroup",
    "UnreadCounter",
    "UnreadState",
    "list_groups",
    "mark_read",
    "participant",
    "purge",
    "queries",
]

"""Notifications: an exact unread counter, counted in the transaction of what is new, and its groups
with their texts, totals and actors, listed and pushed.

Owns the tables unread_counter and notification_group, and the projections of unread counters in
Redis. ``participant`` takes part in the transactions of reactions, comments and blocks; lists and
marks are ``list_notifications`` and ``mark_read``. See docs/notifications.md.
"""

from plaza.notifications.notifications.model import (
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
    "list_notifications",
    "listed",
    "mark_read",
    "participant",
    "prepare_pushes",
    "purge",
    "queries",
]

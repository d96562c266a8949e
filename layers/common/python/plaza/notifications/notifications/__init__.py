"""Notifications: the groups of a user's unread counter with their texts, totals and actors, listed
and pushed.

Owns no table and no key: ``unread`` has the groups.
"""

from plaza.notifications.notifications.model import Notification, NotificationPage

__all__ = ["Notification", "NotificationPage", "list_notifications"]

"""Notifications: the groups of a user's bell with their texts, totals and actors, listed and
pushed.

Owns no table and no key: ``bell`` has the groups.
"""

from plaza.notifications.model import Notification, NotificationPage

__all__ = ["Notification", "NotificationPage", "list_notifications"]

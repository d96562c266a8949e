"""Push messages: what users receive, their browsers, and the two queues to the push services.

Owns the tables push_subscription, push_recipient and notification_preference. Contexts call
``infra.queues.announcements`` after a commit that notified or decided something; ``notifications``
consumes PUSHES and composes. ``send_requests`` runs outside of the VPC. See docs/notifications.md.
"""

from plaza.notifications.push.model import (
    KINDS,
    PushRequest,
    PushTask,
    Recipient,
    Subscription,
    topic_of,
)

__all__ = [
    "KINDS",
    "PushRequest",
    "PushTask",
    "Recipient",
    "Subscription",
    "announce",
    "prepared",
    "queues",
    "send_requests",
    "subscriptions",
    "topic_of",
]

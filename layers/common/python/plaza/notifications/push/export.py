"""What an export has of a user's push messages."""

from __future__ import annotations

from plaza.infra.mysql.export_sections import Section

SECTIONS = (
    Section(
        name="push_subscriptions",
        table="push_subscription",
        user="user_id",
        order={"endpoint_hash": bytes},
        columns=("endpoint", "created_at"),
    ),
    Section(
        name="notification_preferences",
        table="notification_preference",
        user="user_id",
        order={"kind": str, "channel": str},
        columns=("kind", "channel", "is_on"),
    ),
)

"""What an export has of a user's notifications."""

from __future__ import annotations

from plaza.infra.mysql.export_sections import Section

SECTIONS = (
    Section(
        name="notifications",
        table="notification_group",
        user="user_id",
        order={"kind": str, "subject_type": str, "subject_id": int},
        columns=("kind", "subject_type", "subject_id", "changed_at"),
    ),
)

"""What an export has of a user's blocks."""

from __future__ import annotations

from plaza.infra.mysql.export_sections import Section

SECTIONS = (
    Section(
        name="blocks",
        table="user_block",
        user="blocker_id",
        order={"blocked_id": int},
        columns=("blocked_id", "created_at"),
    ),
)

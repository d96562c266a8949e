"""What an export has of a user's sessions."""

from __future__ import annotations

from plaza.infra.mysql.export_sections import Section

SECTIONS = (
    Section(
        name="sessions",
        table="session",
        user="user_id",
        index="by_user",
        order={"token_sha256": bytes},
        columns=("created_at", "expires_at"),
    ),
)

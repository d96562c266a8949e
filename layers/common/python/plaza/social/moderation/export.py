"""What an export has of a user's reports."""

from __future__ import annotations

from plaza.infra.mysql.export_sections import Section

SECTIONS = (
    Section(
        name="reports",
        table="report",
        user="reporter_id",
        index="by_reporter",
        order={"id": int},
        columns=("id", "target_type", "target_id", "reason", "details", "outcome", "created_at"),
    ),
)

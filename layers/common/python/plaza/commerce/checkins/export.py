"""What an export has of a user's check-ins."""

from __future__ import annotations

from datetime import date

from plaza.infra.mysql.export_sections import Section

SECTIONS = (
    Section(
        name="checkins",
        table="checkin",
        user="user_id",
        order={"day": date},
        columns=("day", "version", "request_id", "created_at"),
    ),
)

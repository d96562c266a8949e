"""What an export has of a user with many followers."""

from __future__ import annotations

from plaza.infra.mysql.export_sections import Section

SECTIONS = (
    Section(
        name="celebrity",
        table="celebrity",
        user="user_id",
        order={"user_id": int},
        columns=("since",),
    ),
)

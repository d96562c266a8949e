"""What an export has of the targets of the app that a user owns."""

from __future__ import annotations

from plaza.infra.mysql.export_sections import Section

SECTIONS = (
    Section(
        name="targets",
        table="external_target",
        user="owner_id",
        index="by_owner",
        order={"type": str, "id": int},
        columns=("type", "external_id", "url", "created_at", "deleted_at"),
    ),
)

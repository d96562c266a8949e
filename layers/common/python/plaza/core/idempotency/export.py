"""What an export has of a user's idempotency keys."""

from __future__ import annotations

from plaza.infra.mysql.export_sections import Section

SECTIONS = (
    Section(
        name="idempotency_keys",
        table="idempotency_key",
        user="user_id",
        order={"key_sha256": bytes},
        columns=("resource_type", "resource_id", "created_at"),
    ),
)

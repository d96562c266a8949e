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
        columns=("created_at", "expires_at", "method", "signed_in_at", "client"),
    ),
    Section(
        name="passkeys",
        table="passkey",
        user="user_id",
        index="by_user",
        order={"credential_sha256": bytes},
        columns=("name", "created_at", "used_at"),
    ),
    Section(
        name="passkey_codes",
        table="passkey_code",
        user="user_id",
        order={"user_id": int},
        columns=("expires_at",),
    ),
)

"""What an export has of a user's profile, phone and identity, also of a closed account."""

from __future__ import annotations

from plaza.infra.mysql.export_sections import Section

SECTIONS = (
    Section(
        name="profile",
        table="user",
        user="id",
        order={"id": int},
        columns=(
            "id", "nickname", "avatar", "role", "time_zone", "latest_day", "version", "created_at",
        ),
    ),
    Section(
        name="phone",
        table="user_phone",
        user="user_id",
        index="by_user",
        order={"user_id": int},
        columns=("phone", "created_at"),
    ),
    Section(
        name="identity",
        table="user_identity",
        user="user_id",
        index="by_user",
        order={"user_id": int},
        columns=("issuer", "subject", "created_at"),
    ),
    Section(
        name="closed_profile",
        table="closed_user",
        user="user_id",
        order={"user_id": int},
        columns=(
            "nickname", "avatar", "role", "time_zone", "latest_day", "version", "created_at",
            "phone", "issuer", "subject", "closed_at",
        ),
    ),
)  # fmt: skip

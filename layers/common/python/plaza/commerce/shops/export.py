"""What an export has of the shops that a user acts for."""

from __future__ import annotations

from plaza.infra.mysql.export_sections import Section

SECTIONS = (
    Section(
        name="shops",
        table="shop_member",
        user="user_id",
        index="by_user",
        order={"shop_id": int},
        columns=("shop_id", "role", "created_at"),
    ),
)

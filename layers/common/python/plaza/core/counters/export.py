"""What an export has of a user's totals."""

from __future__ import annotations

from plaza.core.counters.model import USER_COLUMNS
from plaza.infra.mysql.export_sections import Section

SECTIONS = (
    Section(
        name="totals",
        table="user_counter",
        user="user_id",
        order={"user_id": int},
        columns=USER_COLUMNS,
    ),
)

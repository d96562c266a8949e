"""What an export has of a user's reactions of all kinds, and of the user's followers."""

from __future__ import annotations

from plaza.infra.mysql.export_sections import Section
from plaza.reactions.model import FOLLOW, KINDS

SECTIONS = (
    *(
        Section(
            name=name,
            table="reaction",
            user="actor_id",
            conditions=(f"kind = '{kind}'", f"state = {state:d}"),
            index="by_actor",
            order={"version": int, "target_type": str, "target_id": int},
            columns=("target_type", "target_id", "version", "created_at", "updated_at"),
        )
        for kind in KINDS
        for name, state in ((f"{kind}s", 1), (f"{kind}s_taken_back", 0))
    ),
    Section(
        name="followers",
        table="reaction",
        user="target_id",
        conditions=("target_type = 'user'", f"kind = '{FOLLOW.name}'", "state = 1"),
        index="by_target",
        order={"version": int, "actor_id": int},
        columns=("actor_id AS user_id", "version"),
    ),
)

"""What an export has of a user's reactions of all kinds, and of the user's followers."""

from __future__ import annotations

from plaza.core.reactions.kinds import FOLLOW, KINDS
from plaza.core.reactions.mysql_sorted_lists import render_is_sorted
from plaza.infra.mysql.export_sections import Section


class _Followers(Section):
    """Followers from the sorted list of the user, or from ``reaction``, in the same order."""

    __slots__ = ()

    def render_select(self, has_key: bool) -> str:
        is_sorted = render_is_sorted(FOLLOW, "user", "%(exported_user)s")
        arms = (
            self.render_arm("sorted_reaction", has_key, [is_sorted]),
            self.render_arm(self.table, has_key, [f"NOT {is_sorted}"]),
        )
        columns = ", ".join(str(number) for number, _ in enumerate(self.order, 1))
        return f"({') UNION ALL ('.join(arms)}) ORDER BY {columns}"


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
    _Followers(
        name="followers",
        table="reaction",
        user="target_id",
        conditions=("target_type = 'user'", f"kind = '{FOLLOW.name}'", "state = 1"),
        order={"version": int, "actor_id": int},
        columns=("actor_id AS user_id", "version"),
    ),
)

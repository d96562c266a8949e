"""What saved reactions do to the bells of their owners."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from plaza.bell import GroupKey, Move
from plaza.bell import moves as bell_moves
from plaza.infra.mysql.mysql import Cursor
from plaza.reactions.model import CounterChange, ReactionKey, ReactionRow


def apply(
    cursor: Cursor,
    owners: Mapping[tuple[str, int], int],
    before: Mapping[ReactionKey, ReactionRow],
    changes: Iterable[CounterChange],
    *,
    rings: bool,
) -> dict[tuple[str, int, str, int], int]:
    """Ring for rows that were turned on, take back those that were turned off; return key ->
    bell_position of the rows that have one. ``before``: the rows before ``changes``.

    The counters of the targets are locked. Four statements if something rings or is taken back,
    two more for the first ring of an owner, else none.
    """
    positions: dict[tuple[str, int, str, int], int] = {
        key: row.bell_position for key, row in before.items() if row.bell_position
    }
    keys, moves = [], []
    for change in changes:
        target, kind = change.target, change.kind
        owner = owners.get(target)
        if owner is None or not kind.rings:
            continue
        group = GroupKey(owner, kind.name, *target)
        for actor_id, _, on, moved, _ in change.actors:
            if moved and actor_id != owner:
                key = (*target, kind.name, actor_id)
                rang_at = positions.get(key, 0)
                if rang_at or (on and rings):
                    keys.append(key)
                    moves.append(Move(group, actor_id, on, rang_at))
    if moves:
        moved_to = bell_moves.move(cursor, moves, rings=rings)
        positions.update(zip(keys, moved_to, strict=True))
    return positions

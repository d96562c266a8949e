"""What saved reactions do to the bells of their owners: a participant of the storing transaction.

Three pure functions: ``reads`` returns the moves whose SELECTs (``moves.select``) are in the second
packet, ``decide`` the writes of the third one, ``after`` the users to refresh after the commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from plaza.bell import GroupKey, Move, moves
from plaza.reactions.model import KINDS, CounterChange, ReactionKey, ReactionRow

Key = tuple[str, int, str, int]
"""A ReactionKey: a plain tuple is made in a tenth of the time."""


class BellDecision(NamedTuple):
    """Writes of bells, and key -> bell_position of the rows that have one; None: all stay."""

    writes: Sequence[str] = ()
    positions: Mapping[Key, int] | None = None


def reads(
    owners: Mapping[tuple[str, int], int],
    before: Mapping[ReactionKey, ReactionRow],
    changes: Iterable[CounterChange],
    *,
    rings: bool,
) -> dict[Key, Move]:
    """Return a move for each row that ``changes`` turn on, which may ring, or turn off after it
    rang. ``before``: the rows before the batch. ``rings``: False lets nothing ring."""
    positions = _positions_of(before)
    new_moves = {}
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
                    new_moves[key] = Move(group, actor_id, on, rang_at)
    return new_moves


def decide(
    new_moves: Mapping[Key, Move],
    rows: moves.Rows,
    before: Mapping[ReactionKey, ReactionRow],
    *,
    rings: bool,
) -> BellDecision:
    """Return what the moves of ``reads`` change. ``rows``: of their SELECTs."""
    if not new_moves:
        return BellDecision()
    writes, moved_to = moves.decide(rows, new_moves.values(), rings=rings)
    positions = _positions_of(before) | dict(zip(new_moves, moved_to, strict=True))
    return BellDecision(writes, positions)


def after(owners: Mapping[tuple[str, int], int], keys: Iterable[ReactionKey]) -> Collection[int]:
    """Return the owners whose bells reactions with ``keys`` may have moved, now or in a transaction
    of a consumer that was killed before it refreshed them."""
    return {owners[key[:2]] for key in keys if KINDS[key.kind].rings and key[:2] in owners}


def _positions_of(rows: Mapping[ReactionKey, ReactionRow]) -> dict[Key, int]:
    return {key: row.bell_position for key, row in rows.items()}

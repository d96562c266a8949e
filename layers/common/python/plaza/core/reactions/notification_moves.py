"""What saved reactions do to the unread counters of their owners: a participant of the storing
transaction.

Three pure functions: ``reads`` returns the moves whose SELECTs (``moves.select``) are in the second
packet, ``decide`` the writes of the third one, ``after`` the users to refresh after the commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from plaza.core.reactions.kinds import KINDS
from plaza.core.reactions.model import CounterChange, ReactionKey, ReactionRow
from plaza.notifications.unread import GroupKey, Move, moves

Key = tuple[str, int, str, int]
"""A ReactionKey: a plain tuple is made in a tenth of the time."""


class NotificationDecision(NamedTuple):
    """Writes of unread counters, and key -> notified_sequence of the rows that have one; None: all
    stay."""

    writes: Sequence[str] = ()
    sequences: Mapping[Key, int] | None = None


def reads(
    owners: Mapping[tuple[str, int], int],
    before: Mapping[ReactionKey, ReactionRow],
    changes: Iterable[CounterChange],
    *,
    notifies: bool,
) -> dict[Key, Move]:
    """Return a move for each row that ``changes`` turn on, which may notify, or turn off after it
    notified. ``before``: the rows before the batch. ``notifies``: False lets nothing notify."""
    sequences = _sequences_of(before)
    new_moves = {}
    for change in changes:
        target, kind = change.target, change.kind
        owner = owners.get(target)
        if owner is None or not kind.notifies:
            continue
        group = GroupKey(owner, kind.name, *target)
        for actor_id, _, on, moved, _ in change.actors:
            if moved and actor_id != owner:
                key = (*target, kind.name, actor_id)
                notified_at = sequences.get(key, 0)
                if notified_at or (on and notifies):
                    new_moves[key] = Move(group, actor_id, on, notified_at)
    return new_moves


def decide(
    new_moves: Mapping[Key, Move],
    rows: moves.Rows,
    before: Mapping[ReactionKey, ReactionRow],
    *,
    notifies: bool,
) -> NotificationDecision:
    """Return what the moves of ``reads`` change. ``rows``: of their SELECTs."""
    if not new_moves:
        return NotificationDecision()
    writes, moved_to = moves.decide(rows, new_moves.values(), notifies=notifies)
    sequences = _sequences_of(before) | dict(zip(new_moves, moved_to, strict=True))
    return NotificationDecision(writes, sequences)


def after(owners: Mapping[tuple[str, int], int], keys: Iterable[ReactionKey]) -> Collection[int]:
    """Return the owners whose unread counters reactions with ``keys`` may have moved, now or in a
    transaction of a consumer that was killed before it refreshed them."""
    return {owners[key[:2]] for key in keys if KINDS[key.kind].notifies and key[:2] in owners}


def _sequences_of(rows: Mapping[ReactionKey, ReactionRow]) -> dict[Key, int]:
    return {key: row.notified_sequence for key, row in rows.items()}

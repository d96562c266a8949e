"""What saved reactions do to the bells of their owners."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from plaza.bell import GroupKey, Move
from plaza.bell.moves import PendingMoves
from plaza.infra.mysql.mysql import Cursor
from plaza.reactions.model import KINDS, CounterChange, ReactionKey, ReactionRow

_Key = tuple[str, int, str, int]


class BellMoves:
    """The moves of one batch, in steps: while MySQL works on one, the caller prepares other
    statements (``PendingMoves``)."""

    def __init__(
        self,
        pending: PendingMoves,
        owners: Mapping[tuple[str, int], int],
        positions: Mapping[_Key, int],
        *,
        rings: bool,
    ) -> None:
        self._pending, self._owners, self._rings = pending, owners, rings
        self._positions = dict(positions)
        self._keys: list[_Key] = []

    def request_groups(self, changes: Iterable[CounterChange]) -> None:
        """Ring for rows that ``changes`` turn on, take back for rows that they turn off. One
        statement, none without a move; two more for the first ring of an owner."""
        moves = []
        for change in changes:
            target, kind = change.target, change.kind
            owner = self._owners.get(target)
            if owner is None or not kind.rings:
                continue
            group = GroupKey(owner, kind.name, *target)
            for actor_id, _, on, moved, _ in change.actors:
                if moved and actor_id != owner:
                    key = (*target, kind.name, actor_id)
                    rang_at = self._positions.get(key, 0)
                    if rang_at or (on and self._rings):
                        self._keys.append(key)
                        moves.append(Move(group, actor_id, on, rang_at))
        self._pending.request_groups(moves, rings=self._rings)

    def receive_groups(self) -> None:
        """Read the groups; then other statements may be sent."""
        self._pending.receive_groups()

    def apply(self) -> dict[_Key, int]:
        """Store the moves; return key -> bell_position of the rows that have one. Two statements,
        none if no bell changes."""
        moved_to = self._pending.apply()
        return self._positions | dict(zip(self._keys, moved_to, strict=True))


def lock_bells(
    cursor: Cursor,
    owners: Mapping[tuple[str, int], int],
    keys: Collection[ReactionKey],
    before: Mapping[ReactionKey, ReactionRow],
    *,
    rings: bool,
) -> BellMoves | None:
    """Lock the bells of the owners whom reactions with ``keys`` may move, by one statement; None,
    without one, if they move none. ``before``: the rows before the batch.

    The counters of the targets are locked.
    """
    positions: dict[_Key, int] = {
        key: row.bell_position for key, row in before.items() if row.bell_position
    }
    users = {owners[key[:2]] for key in keys if KINDS[key.kind].rings and key[:2] in owners}
    if not users or not (rings or positions):
        return None
    return BellMoves(PendingMoves(cursor, users), owners, positions, rings=rings)

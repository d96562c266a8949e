"""Rules of the bell: what a change of a reaction or a comment does to it. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from plaza.infra.runtime.codec import Codec, json_codec

LIKE, COMMENT, FOLLOW = "like", "comment", "follow"
POSITIONS_PER_EPOCH = 2**40
UNREAD: Codec[int] = json_codec("bells", int)


class GroupKey(NamedTuple):
    """A recipient, a kind (like, comment, follow) and the subject; sorts as the primary key."""

    user_id: int
    kind: str
    subject_type: str
    subject_id: int

    @property
    def subject(self) -> tuple[str, int]:
        return self.subject_type, self.subject_id


class Move(NamedTuple):
    """A reaction or comment of a group that was turned on or off. ``rang_at``: the position at
    which it rang before, 0 if it never did."""

    group: GroupKey
    actor_id: int
    on: bool
    rang_at: int


class BellState(NamedTuple):
    """What a client displays: ``version`` is the position with the epoch of MySQL."""

    version: int
    unread: int

    @property
    def position(self) -> int:
        return self.version % POSITIONS_PER_EPOCH


class GroupPosition(NamedTuple):
    """A position in the list of groups, which the newest ring begins."""

    changed: int
    kind: str
    subject_type: str
    subject_id: int


class ListedGroup(NamedTuple):
    """A group as the list displays it."""

    key: GroupKey
    fresh: int
    changed: int
    changed_at: datetime

    @property
    def position(self) -> GroupPosition:
        return GroupPosition(self.changed, *self.key[1:])


@dataclass(slots=True)
class Bell:
    """A row of bell, locked."""

    position: int = 0
    unread: int = 0
    blocking: int = 0


@dataclass(slots=True)
class Group:
    """A row of bell_group, whose bell is locked; the fields are in the order of its columns."""

    fresh: int
    read_position: int
    changed: int
    shown_position: int
    fresh_after: int
    is_open: bool

    @classmethod
    def begin(cls, position: int) -> Group:
        """Return a new group of a bell: what rang before ``position`` is read."""
        return cls(0, position, position, position, 0, False)

    def ring(self, at: int) -> None:
        self.fresh += 1
        self.fresh_after += 1
        self.changed, self.is_open = at, True

    def take_back(self, rang_at: int) -> None:
        """Take back an unread ring. A ``fresh`` that is too low, which the audit finds, stays."""
        self.fresh = max(0, self.fresh - 1)
        if rang_at > self.shown_position:
            self.fresh_after = max(0, self.fresh_after - 1)

    def display(self, position: int) -> bool:
        """Store the checkpoint of a list; return whether it changed."""
        if self.fresh_after == 0 and self.shown_position == position:
            return False
        self.shown_position, self.fresh_after = position, 0
        return True

    def is_overtaken(self, at: int) -> bool:
        """Return whether another list replaced the checkpoint of a position after which it rang."""
        return self.shown_position > at and self.changed > at

    def mark(self, at: int, rung_after: int = 0) -> None:
        """Read what a device displayed at a position: all of it, or what rang up to the checkpoint
        if more rang since. ``rung_after``: how many rows rang after the position, if another list
        replaced the checkpoint."""
        if self.changed <= at:
            self.close(at)
        elif self.is_overtaken(at):
            self.read_position, self.fresh = at, rung_after
        else:
            self.read_position, self.fresh = self.shown_position, self.fresh_after

    def close(self, position: int) -> None:
        """Read all."""
        self.fresh, self.fresh_after, self.is_open = 0, 0, False
        self.read_position = position
        self.shown_position = max(self.shown_position, position)


class Silence(NamedTuple):
    """What may not ring: everything, deleted subjects, and pairs of (recipient, blocked actor)."""

    everything: bool
    deleted: Collection[tuple[str, int]]
    blocked: Collection[tuple[int, int]]

    def includes(self, move: Move) -> bool:
        group = move.group
        return (
            self.everything
            or group.subject in self.deleted
            or (group.user_id, move.actor_id) in self.blocked
        )


class Moved(NamedTuple):
    """The result of moves: the position of each one's row, the groups that changed, and the users
    whose bells changed, with the change of their unread groups."""

    positions: list[int]
    groups: dict[GroupKey, Group]
    users: dict[int, int]


def apply_moves(
    moves: Iterable[Move],
    bells: Mapping[int, Bell],
    groups: dict[GroupKey, Group],
    silence: Silence,
) -> Moved:
    """Apply the moves of one transaction, whose ``bells`` are locked, to ``groups``, which it
    changes.

    All rings of a recipient get the same position, one above the bell's. A ring that was read stays
    silent: it rings once. What may not ring forgets an unread ring, which would count again.
    """
    moved = Moved([], {}, {})
    silences = silence.everything or silence.deleted or silence.blocked
    for move in moves:
        key, _, on, rang_at = move
        bell, group = bells[key.user_id], groups.get(key)
        read = bell.position if group is None else group.read_position
        if on:
            if silences and silence.includes(move):
                moved.positions.append(0 if rang_at > read else rang_at)
                continue
            if 0 < rang_at <= read:
                moved.positions.append(rang_at)
                continue
            if group is None:
                group = groups[key] = Group.begin(bell.position)
            was_fresh, at = group.fresh > 0, bell.position + 1
            group.ring(at)
            moved.positions.append(at)
        else:
            moved.positions.append(rang_at)
            if group is None or rang_at <= read:
                continue
            was_fresh = group.fresh > 0
            group.take_back(rang_at)
        change = (group.fresh > 0) - was_fresh
        moved.groups[key] = group
        moved.users[key.user_id] = moved.users.get(key.user_id, 0) + change
    return moved

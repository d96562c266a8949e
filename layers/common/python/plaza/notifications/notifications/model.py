"""Rules of the unread counter: what a change of a reaction or a comment does to it. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from plaza.infra.mysql.participants import GroupKey, Move
from plaza.infra.runtime.codec import Codec, json_codec

LIKE, COMMENT, FOLLOW = "like", "comment", "follow"
SEQUENCES_PER_EPOCH = 2**40
UNREAD: Codec[int] = json_codec("unread", int)


class UnreadState(NamedTuple):
    """What a client displays: ``version`` is the sequence with the epoch of MySQL."""

    version: int
    unread: int

    @property
    def sequence(self) -> int:
        return self.version % SEQUENCES_PER_EPOCH


class GroupCursor(NamedTuple):
    """A place of the list of groups, which the newest notification begins: what a page's cursor
    holds."""

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
    def cursor(self) -> GroupCursor:
        return GroupCursor(self.changed, *self.key[1:])


@dataclass(slots=True)
class UnreadCounter:
    """A row of unread_counter, locked."""

    sequence: int = 0
    unread: int = 0
    blocking: int = 0


@dataclass(slots=True)
class Group:
    """A row of notification_group, whose unread counter is locked; the fields are in the order of
    its columns."""

    fresh: int
    read_sequence: int
    changed: int
    shown_sequence: int
    fresh_after: int
    is_open: bool

    @classmethod
    def begin(cls, sequence: int) -> Group:
        """Return a new group of an unread counter: what notified before ``sequence`` is read."""
        return cls(0, sequence, sequence, sequence, 0, False)

    def notify(self, at: int) -> None:
        self.fresh += 1
        self.fresh_after += 1
        self.changed, self.is_open = at, True

    def take_back(self, notified_at: int) -> None:
        """Take back an unread notification. A ``fresh`` that is too low, which the audit finds,
        stays."""
        self.fresh = max(0, self.fresh - 1)
        if notified_at > self.shown_sequence:
            self.fresh_after = max(0, self.fresh_after - 1)

    def display(self, sequence: int) -> bool:
        """Store the checkpoint of a list; return whether it changed."""
        if self.fresh_after == 0 and self.shown_sequence == sequence:
            return False
        self.shown_sequence, self.fresh_after = sequence, 0
        return True

    def is_overtaken(self, at: int) -> bool:
        """Return whether another list replaced the checkpoint of a sequence after which it
        notified."""
        return self.shown_sequence > at and self.changed > at

    def mark(self, at: int, notified_after: int = 0) -> None:
        """Read what a device displayed at a sequence: all of it, or what notified up to the
        checkpoint if more notified since. ``notified_after``: how many rows notified after the
        sequence, if another list replaced the checkpoint."""
        if self.changed <= at:
            self.close(at)
        elif self.is_overtaken(at):
            self.read_sequence, self.fresh = at, notified_after
        else:
            self.read_sequence, self.fresh = self.shown_sequence, self.fresh_after

    def close(self, sequence: int) -> None:
        """Read all."""
        self.fresh, self.fresh_after, self.is_open = 0, 0, False
        self.read_sequence = sequence
        self.shown_sequence = max(self.shown_sequence, sequence)


class Silence(NamedTuple):
    """What may not notify: everything, deleted subjects, and pairs of (recipient, blocked
    actor)."""

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
    """The result of moves: the sequence of each one's row, the groups that changed, and the users
    whose unread counters changed, with the change of their unread groups."""

    sequences: list[int]
    groups: dict[GroupKey, Group]
    users: dict[int, int]


def apply_moves(
    moves: Iterable[Move],
    unread_counters: Mapping[int, UnreadCounter],
    groups: dict[GroupKey, Group],
    silence: Silence,
) -> Moved:
    """Apply the moves of one transaction, whose ``unread counters`` are locked, to ``groups``,
    which it changes.

    All notifications of a recipient get the same sequence, one above the unread counter's. A
    notification that was read stays silent: it notifies once. What may not notify forgets an unread
    notification, which would count again.
    """
    moved = Moved([], {}, {})
    silences = silence.everything or silence.deleted or silence.blocked
    for move in moves:
        key, _, on, notified_at = move
        counter, group = unread_counters[key.user_id], groups.get(key)
        read = counter.sequence if group is None else group.read_sequence
        if on:
            if silences and silence.includes(move):
                moved.sequences.append(0 if notified_at > read else notified_at)
                continue
            if 0 < notified_at <= read:
                moved.sequences.append(notified_at)
                continue
            if group is None:
                group = groups[key] = Group.begin(counter.sequence)
            was_fresh, at = group.fresh > 0, counter.sequence + 1
            group.notify(at)
            moved.sequences.append(at)
        else:
            moved.sequences.append(notified_at)
            if group is None or notified_at <= read:
                continue
            was_fresh = group.fresh > 0
            group.take_back(notified_at)
        change = (group.fresh > 0) - was_fresh
        moved.groups[key] = group
        moved.users[key.user_id] = moved.users.get(key.user_id, 0) + change
    return moved

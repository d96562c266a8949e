"""The participant of a transaction: a context of another wing that reads and writes rows of its own
in the transaction of a reaction, a comment or a block.

A manifest names it as ``participates``: a module with the functions of ``Participant``. One context
at most participates. Without it nothing is read, written or refreshed, and each row keeps its
sequence.

The caller locks its own rows first. It sends the participant's SELECTs in a packet (``read``), and
the participant's writes with its own (``decide``, then ``write``); ``run`` does all of it. It calls
``refresh`` with the users concerned after the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple, Protocol

from plaza.infra.contexts import offers
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor

Rows = Sequence[Sequence[mysql.Row]]
"""The rows of each SELECT of ``read``."""


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
    """A reaction or comment of a group that was turned on or off. ``notified_at``: the sequence of
    its row, which the participant returned before; 0 if it never did."""

    group: GroupKey
    actor_id: int
    on: bool
    notified_at: int = 0


class Changes(NamedTuple):
    """What a transaction changes: reactions and comments, and users whose list of blocked users
    changes. ``notifies``: False lets nothing notify."""

    moves: Collection[Move] = ()
    blockers: Collection[int] = ()
    notifies: bool = True


class Writes(NamedTuple):
    """What the participant writes, and the sequence that the row of each move keeps; None: all keep
    theirs."""

    statements: Sequence[str] = ()
    sequences: Sequence[int] | None = None


class Participant(Protocol):
    """Functions of a participant. The first four are pure; the others run after the commit."""

    def reads(self, changes: Changes) -> Sequence[str]:
        """Return the SELECTs that ``decide`` needs; the first one locks."""

    def creates(self, changes: Changes, rows: Rows) -> str | None:
        """Return the statement that creates rows that ``reads`` did not find, None if it found
        all."""

    def decide(self, changes: Changes, rows: Rows) -> Writes:
        """Return what ``changes`` write. ``rows``: of ``reads``."""

    def locks(self, changes: Changes) -> str | None:
        """Return the SELECT that locks without a wait what ``reads`` locks; None for nothing."""

    def projection_key(self, user_id: int) -> str:
        """Return the key of what Redis has of a user."""

    def refresh(self, user_ids: Sequence[int]) -> None:
        """Update what Redis has of users. One statement and one round trip. Raises MysqlDown,
        RedisDown."""

    def clear(self, deleted: Iterable[tuple[str, int, int]]) -> None:
        """Forget deleted subjects (type, id, owner). One statement, and a transaction for each
        owner who has something of them. Safe to repeat. Raises MysqlDown."""


def find() -> Participant | None:
    """Return the participant of this deployment, None without one."""
    return next((participant for _, participant in offers("participates")), None)


def try_lock(cursor: Cursor, changes: Changes) -> bool:
    """Lock what ``read`` locks, without a wait; return False if it is locked or does not exist. One
    statement at most."""
    participant = find()
    select = participant.locks(changes) if participant else None
    return select is None or (mysql.try_lock(cursor, select, ()) and cursor.rowcount > 0)


def read(cursor: Cursor, changes: Changes) -> Rows:
    """Return the rows that ``decide`` needs, of which some are locked and created if they are
    missing. One packet, one more if some are missing; none if nothing is read."""
    participant = find()
    selects = participant.reads(changes) if participant else ()
    rows: Rows = mysql.read_all(cursor, selects) if selects else []
    if selects and participant and (missing := participant.creates(changes, rows)):
        mysql.send(cursor, missing)
        rows = mysql.read_all(cursor, selects)  # another transaction may have created them
    return rows


def decide(changes: Changes, rows: Rows) -> Writes:
    """Return what the participant writes. ``rows``: of ``read``. Pure."""
    participant = find()
    return participant.decide(changes, rows) if participant and rows else Writes()


def write(cursor: Cursor, writes: Writes) -> None:
    """Queue the writes of the participant."""
    for statement in writes.statements:
        mysql.send(cursor, statement)


def run(cursor: Cursor, changes: Changes) -> Sequence[int]:
    """Read, decide and write; return the sequence that the row of each move keeps."""
    writes = decide(changes, read(cursor, changes))
    write(cursor, writes)
    if writes.sequences is None:
        return [move.notified_at for move in changes.moves]
    return writes.sequences


def projection_key() -> Callable[[int], str] | None:
    """Return the function of the keys that Redis has of users; None without a participant."""
    participant = find()
    return participant.projection_key if participant else None


def refresh(user_ids: Sequence[int]) -> None:
    """Update what Redis has of users whom committed changes concern. Costs and errors as
    ``Participant.refresh``."""
    if participant := find():
        participant.refresh(user_ids)


def clear(deleted: Iterable[tuple[str, int, int]]) -> None:
    """Forget subjects (type, id, owner) whose deletion is committed. Costs and errors as
    ``Participant.clear``."""
    if participant := find():
        participant.clear(deleted)

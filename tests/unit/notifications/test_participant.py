"""What reactions, comments and blocks do to unread counters, from the rows that they read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from plaza.infra.mysql import mysql, participants
from plaza.infra.mysql.participants import Changes, GroupKey, Move, Rows, Writes
from plaza.notifications.notifications import participant

OWNER = 99
LIKED = GroupKey(OWNER, "like", "post", 12)
ON, OFF = Move(LIKED, 1, True), Move(LIKED, 2, False, 6)


def render(columns: Mapping[tuple[int, ...], Sequence[int]]) -> str:
    return ",".join(" ".join(map(str, (*key, *rest))) for key, rest in columns.items())


UNREAD: Sequence[mysql.Row] = [(render({(OWNER,): (7, 1, 0)}),)]
GROUP: Sequence[mysql.Row] = [("like", "post", render({(OWNER, 12): (2, 5, 7, 5, 2, 1)}), None)]


@pytest.mark.parametrize(
    ("move", "notifies", "moves"),
    [
        (ON, True, True),
        (ON, False, False),
        (OFF, True, True),
        (OFF, False, True),
        (OFF._replace(notified_at=0), True, False),
        (ON._replace(actor_id=OWNER), True, False),
    ],
)
def test_what_may_notify_or_did_locks_the_unread_counter(
    move: Move, notifies: bool, moves: bool
) -> None:
    changes = Changes([move], notifies=notifies)
    assert bool(participant.reads(changes)) == bool(participant.locks(changes)) == moves


def test_changes_without_moves_read_and_write_nothing() -> None:
    assert participant.reads(Changes()) == []
    assert participants.decide(Changes(), []) == Writes()


def test_notifies_of_one_transaction_share_a_sequence_and_other_rows_keep_theirs() -> None:
    own = Move(LIKED, OWNER, True, 3)
    changes = Changes([ON, own, ON._replace(actor_id=4), OFF])
    writes, sequences = participant.decide(changes, [UNREAD, GROUP])
    assert sequences == [8, 3, 8, 6]
    assert len(writes) == 2
    assert "(99,'like','post',12,3,5,8,5,3,1" in writes[0]


def test_blocked_actors_and_deleted_texts_do_not_notify() -> None:
    deleted: Sequence[mysql.Row] = [("like", "post", None, "12")]
    blocked: Sequence[mysql.Row] = [
        ("like", "post", None, None),
        ("blocked", "", "99 1", None),
    ]
    for around in (deleted, blocked):
        assert participant.decide(Changes([ON]), [UNREAD, around]) == Writes([], [0])


def test_a_block_locks_the_unread_counter_and_counts_blocks() -> None:
    changes = Changes(blockers=[5])
    [select] = participant.reads(changes)
    assert select.strip().endswith("FOR UPDATE")
    rows: Rows = [[(render({(5,): (0, 0, 0)}),)]]
    [write], sequences = participant.decide(changes, rows)
    assert "SET blocking" in write
    assert sequences is None


def test_missing_unread_counters_are_created() -> None:
    changes = Changes([ON], blockers=[5])
    assert participant.creates(changes, [[(render({(5,): (0, 0, 0), (99,): (0, 0, 0)}),)]]) is None
    statement = participant.creates(changes, [[(render({(5,): (0, 0, 0)}),)]])
    assert statement is not None
    assert "VALUES (99," in statement

"""Sorted lists of large targets: when they begin, how each commit changes them, how they are filled
(docs/decisions/0072-sort-reactions-to-large-targets-only.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from plaza.core import counters
from plaza.core.counters import CounterKey, TargetCounter
from plaza.core.reactions import mysql_sorted_lists
from plaza.core.reactions.kinds import KINDS, Kind
from plaza.core.reactions.model import (
    MAX_UNSORTED,
    Commit,
    CounterChange,
    ReactionKey,
    ReactionRow,
    Target,
)
from plaza.core.reactions.mysql_sorted_lists import SortedEntry
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.codec import MAX_ID

TARGET_TYPES = tuple(sorted({of for kind in KINDS.values() for of in kind.targets}))
_MAX_BEGUN = 2 * MAX_UNSORTED
_ROWS_AT_ONCE = 5_000
_COUNTERS_AT_ONCE = 10_000


class SortCursor(NamedTuple):
    """Where sorting continues: after a target, and in the next list after an actor."""

    target_type: str
    after_id: int = 0
    actor_id: int = 0


def change_lists(
    cursor: Cursor,
    locked: Mapping[CounterKey, TargetCounter],
    before: Mapping[ReactionKey, ReactionRow],
    changes: Sequence[CounterChange],
) -> None:
    """Apply ``changes`` of rows to the sorted lists that are kept; ``before``: the rows that
    existed, ``locked``: counters before the changes. No statement without such a list, one for new
    actors, and one for each type and kind with actors who had a row."""
    old: list[SortedEntry] = []
    new: list[SortedEntry] = []
    for change in changes:
        target_type, target_id, kind = key = (*change.target, change.kind.name)
        if change.is_new and locked[key].keeps_list:
            for actor_id, version_us, on, _, is_newer in change.actors:
                if is_newer:
                    new.append((target_type, target_id, kind, int(on), version_us, actor_id))
                    if row := before.get(ReactionKey(target_type, target_id, kind, actor_id)):
                        was = int(row.on), row.version_us
                        old.append((target_type, target_id, kind, *was, actor_id))
    if new:
        mysql_sorted_lists.delete_entries(cursor, old)
        mysql_sorted_lists.insert_entries(cursor, new)


def begin_list(
    cursor: Cursor,
    locked: Mapping[CounterKey, TargetCounter],
    commits: Sequence[Commit],
) -> None:
    """Sort the first target that ``commits`` made large, if its rows are few enough for one
    transaction. Counters have the commits. No statement without such a target, else four."""
    for commit in commits:
        counter = locked[(*commit.target, commit.kind.name)]
        if MAX_UNSORTED < commit.total <= _MAX_BEGUN and not counter.keeps_list:
            _sort_at_once(cursor, commit.kind, commit.target)
            return


def _sort_at_once(cursor: Cursor, kind: Kind, target: Target) -> None:
    """Fill a list of less than 5,000 rows; leave a larger one to ``sort_list``."""
    last_id = mysql_sorted_lists.find_last_actor(cursor, kind, target, 0, _ROWS_AT_ONCE)
    if last_id is None and _clear(cursor, kind, target):
        mysql_sorted_lists.copy_rows(cursor, kind, target, 0, None)
        counters.mark_lists(cursor, [(*target, kind.name)], "complete")


def _clear(cursor: Cursor, kind: Kind, target: Target) -> bool:
    """Delete up to 5,000 entries that no commit keeps; return whether there were fewer."""
    return mysql_sorted_lists.clear(cursor, kind, target, _ROWS_AT_ONCE) < _ROWS_AT_ONCE


def sort_list(kind: Kind, target: Target, deadline: Deadline, after_id: int = 0) -> int | None:
    """Fill the sorted list of a target, 5,000 rows in a transaction, until the deadline.

    Returns None when it is complete, else the actor to continue after. Consumers of the target wait
    for each transaction. Safe to repeat and to run concurrently. Raises MysqlDown.
    """
    cursor: int | None = after_id
    while cursor is not None and not deadline.has_passed:
        cursor = counters.run_in_transaction(
            partial(_sort_part, kind=kind, target=target, after_id=cursor)
        )
    return cursor


def _sort_part(cursor: Cursor, kind: Kind, target: Target, after_id: int) -> int | None:
    key = (*target, kind.name)
    counter = counters.lock_targets(cursor, [key])[key]
    if counter.has_list or not counter.version:
        return None
    if not counter.keeps_list:
        if _clear(cursor, kind, target):
            counters.mark_lists(cursor, [key], "filling")
        return 0
    last_id = mysql_sorted_lists.find_last_actor(cursor, kind, target, after_id, _ROWS_AT_ONCE)
    mysql_sorted_lists.copy_rows(cursor, kind, target, after_id, last_id)
    if last_id is None:
        counters.mark_lists(cursor, [key], "complete")
    return last_id


def sort_again(differing: Iterable[tuple[Kind, Target]], deadline: Deadline) -> None:
    """End sorted lists whose entries are wrong, in one transaction, and fill them again until the
    deadline. Those that are left are read as if they were small. Raises MysqlDown."""
    pairs = list(differing)
    if pairs:
        keys = sorted((*target, kind.name) for kind, target in pairs)
        counters.run_in_transaction(partial(_end_lists, keys=keys))
    for kind, target in pairs:
        sort_list(kind, target, deadline)


def _end_lists(cursor: Cursor, keys: Sequence[CounterKey]) -> None:
    counters.lock_targets(cursor, keys)
    counters.mark_lists(cursor, keys, "none")


def sort_range(
    target_type: str, after_id: int, last_id: int, deadline: Deadline, actor_id: int = 0
) -> tuple[int, SortCursor | None]:
    """Fill the missing lists of the large targets of a range until the deadline, the first one from
    ``actor_id`` on.

    Returns how many are complete, and the cursor of the next one, None if there is none. One
    statement, and five for each 5,000 rows. Raises MysqlDown.
    """
    missing = mysql_sorted_lists.find_unsorted(target_type, after_id, last_id, MAX_UNSORTED + 1)
    for number, (kind, target) in enumerate(missing):
        left = sort_list(kind, target, deadline, 0 if number else actor_id)
        if left is not None:
            return number, SortCursor(target_type, target.id - 1, left)
    return len(missing), None


def sort_all(cursor: SortCursor | None, deadline: Deadline) -> tuple[int, SortCursor | None]:
    """Fill the missing lists of all large targets, from ``cursor`` on, until the deadline.

    Returns how many are complete now, and the next cursor, None after all. One statement for each
    10,000 counters besides what ``sort_range`` runs. Raises MysqlDown.
    """
    count, begin = 0, cursor or SortCursor(TARGET_TYPES[0])
    for target_type in TARGET_TYPES[TARGET_TYPES.index(begin.target_type) :]:
        _, after_id, actor_id = begin if target_type == begin.target_type else (target_type, 0, 0)
        while after_id < MAX_ID:
            if deadline.has_passed:
                return count, SortCursor(target_type, after_id, actor_id)
            last_id = mysql_sorted_lists.find_range_end(target_type, after_id, _COUNTERS_AT_ONCE)
            sorted_count, left = sort_range(target_type, after_id, last_id, deadline, actor_id)
            count += sorted_count
            if left is not None:
                return count, left
            after_id, actor_id = last_id, 0
    return count, None

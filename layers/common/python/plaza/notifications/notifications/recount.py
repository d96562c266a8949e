"""Compare unread counters and groups with the rows that they count, and repair them."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from itertools import groupby
from typing import NamedTuple

from plaza.core.targets.types import TYPES
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.mysql.participants import GroupKey
from plaza.notifications.notifications import mysql_lists, mysql_recount, mysql_store
from plaza.notifications.notifications.mysql_recount import CountedGroup, CountedUnread, SizedGroup

_BELLS_PER_PAGE = 200
_GROUPS_PER_PAGE = 2_000
MAX_ROWS = 50_000  # of the groups of a page, unless one group has more
MAX_COMPARED = 200
SAMPLED = 100  # one of so many closed groups is compared: a mark leaves them at 0


class ComparedUnread(NamedTuple):
    """Wrong unread counters of a range of users, how many users it has, its last one, and whether
    none follow."""

    wrong: list[CountedUnread]
    users: int
    last_id: int
    is_last: bool


class ComparedGroups(NamedTuple):
    """Wrong groups of a range of users, its users whose unread counters are behind their groups,
    with by how much; how many groups were compared and how many users it has, its last one, and
    whether none follow."""

    wrong: list[CountedGroup]
    behind: dict[int, int]
    compared: int
    users: int
    last_id: int
    is_last: bool


def compare_unread(after_id: int) -> ComparedUnread:
    """Compare the unread counters of the next users with their groups. One statement. Raises
    MysqlDown."""
    page = mysql_recount.count_unread(after_id, _BELLS_PER_PAGE)
    return ComparedUnread(
        [b for b in page if (b.unread, b.blocking) != (b.counted, b.blocks)],
        len(page),
        page[-1].user_id if page else after_id,
        is_last=len(page) < _BELLS_PER_PAGE,
    )


def compare_groups(after_id: int) -> ComparedGroups:
    """Compare the open groups of the next users, and some of the closed ones, with their rows: 200
    groups at most, of about 50,000 rows or one group.

    Of a user with more groups than that, a part chosen at random is compared, so that the time of
    a page is bounded. Two statements, three for a user with more than 2,000 groups. Raises
    MysqlDown.
    """
    page = mysql_recount.read_groups(after_id, _GROUPS_PER_PAGE)
    groups_of = {
        user_id: list(groups)
        for user_id, groups in groupby(page, key=lambda group: group.key.user_id)
    }
    is_last = len(page) < _GROUPS_PER_PAGE
    if not is_last:
        last_user, _ = groups_of.popitem()  # the page may have only some of these
        if not groups_of:
            groups_of[last_user] = mysql_recount.sample_groups(last_user, _GROUPS_PER_PAGE)
    keys: list[GroupKey] = []
    behind: dict[int, int] = {}
    rows, users, last_id = 0, 0, after_id
    for user_id, groups in groups_of.items():
        # Groups of types that the deployment left out have no rows that it knows.
        known = [group for group in groups if group.key.subject_type in TYPES]
        chosen = [g for g in known if g.is_new or g.key.subject_id % SAMPLED == 0]
        if keys and (len(keys) + len(chosen) > MAX_COMPARED or rows + _sum_rows(chosen) > MAX_ROWS):
            is_last = False
            break
        chosen = _limit(chosen)
        keys += [group.key for group in chosen]
        rows += _sum_rows(chosen)
        users, last_id = users + 1, user_id
        if excess := max(group.excess for group in groups):
            behind[user_id] = excess
    counted = mysql_recount.count_groups(keys)
    wrong = [group for group in counted if not group.is_right]
    return ComparedGroups(wrong, behind, len(counted), users, last_id, is_last)


def _limit(groups: list[SizedGroup]) -> list[SizedGroup]:
    """Return the groups of a user, or as many of them, chosen at random, as a page may have."""
    if len(groups) <= MAX_COMPARED and _sum_rows(groups) <= MAX_ROWS:
        return groups
    chosen: list[SizedGroup] = []
    rows = 0
    for group in random.sample(groups, min(len(groups), MAX_COMPARED)):
        if not chosen or rows + group.rows <= MAX_ROWS:
            chosen.append(group)
            rows += group.rows
    return chosen


def _sum_rows(groups: Sequence[SizedGroup]) -> int:
    return sum(group.rows for group in groups)


def repair(cursor: Cursor, user_ids: Collection[int], keys: Collection[GroupKey]) -> int:
    """Recount the groups of ``keys``, the counters of whose subjects are locked, and the unread
    counters of their and other users; return how many unread counters were wrong.

    A repaired group with something fresh is open, so that a mark reads it. Seven statements.
    """
    users = sorted({*user_ids, *(key.user_id for key in keys)})
    unread_counters = mysql_store.lock_existing(cursor, users) if users else {}
    if not unread_counters:
        return 0
    corrected = mysql_recount.correct_unread(cursor, unread_counters)
    known = [key for key in keys if key.user_id in unread_counters]
    wrong = {
        counted.key: counted
        for counted in mysql_recount.count_groups(known, cursor)
        if not counted.is_right
    }
    if wrong:
        groups, _, _ = mysql_store.read_around(cursor, wrong, ())
        for key, group in groups.items():
            group.fresh, group.fresh_after = wrong[key].counted, wrong[key].counted_after
            group.is_open = group.is_open or group.fresh > 0
        mysql_store.store(cursor, groups)
    repaired = {key.user_id for key in wrong}
    changes = {
        user_id: unread - unread_counters[user_id].unread
        for user_id, unread in mysql_lists.count_unread(cursor, unread_counters).items()
        if unread != unread_counters[user_id].unread or user_id in repaired
    }
    mysql_store.store(cursor, {}, changes)
    return max(corrected, len(changes))

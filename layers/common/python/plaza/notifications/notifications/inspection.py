"""Unread counters and groups beside their rows, and unread counters in Redis beside MySQL, for the
reconciliation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from plaza.core import counters
from plaza.core.targets import lookup
from plaza.infra.derived.comparisons import (
    DerivedList,
    Finding,
    Repair,
    RollingComparison,
    StepResult,
    Subject,
    Tally,
)
from plaza.infra.derived.list_state import ListState
from plaza.infra.mysql.id_ranges import estimate_left
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.mysql.participants import GroupKey
from plaza.infra.redis import redis
from plaza.infra.runtime.codec import MAX_ID
from plaza.infra.runtime.observability import record
from plaza.notifications.notifications import mysql_lists, queries, recount
from plaza.notifications.notifications.model import COMMENT, FOLLOW, LIKE, UNREAD
from plaza.notifications.notifications.redis_store import drop_unread, unread_key

_KEY = re.compile(r"\{\d+\}:user:([1-9]\d{0,18}):unread", re.ASCII)
_UNREAD = "unread"  # ``what`` of a user
_GROUP = "unread-"  # begins ``what`` of the subject of a group, before the kind

# The reasons of findings.
_TOTAL = "unread-total"  # unread is not the number of groups with something fresh
_BLOCKS = "unread-blocks"  # blocking is not the number of blocks by the user
_SEQUENCE = "unread-sequence"  # an unread counter is behind one of its groups
_FRESH = "unread-fresh"  # fresh is not the number of rows that notified since the group was read


def owner_of_key(key: str) -> int | None:
    """Return the user whose unread counter is at ``key``, None for any other key."""
    match = _KEY.fullmatch(key)
    user_id = int(match[1]) if match else 0
    return user_id if 0 < user_id <= MAX_ID and unread_key(user_id) == key else None


def compare(user_ids: Sequence[int]) -> dict[int, ListState]:
    """Compare the unread counters in Redis with MySQL, which is read after them; omit users without
    one. One round trip and one statement. Raises RedisDown, MysqlDown."""
    replies = redis.pipeline(
        [("HMGET", unread_key(user_id), "version", "value") for user_id in user_ids]
    )
    cached = {
        user_id: f"{value} @{version}"
        for user_id, (version, value) in zip(user_ids, replies, strict=True)
        if value is not None
    }
    differences = {
        user_id: f"Redis {cached[user_id]:.60}, MySQL {expected}"
        for user_id, (version, unread) in mysql_lists.read_states(cached).items()
        if cached[user_id] != (expected := f"{UNREAD.encode(unread)} @{version}")
    }
    return {
        user_id: ListState(observed[:512], differences.get(user_id, ""))
        for user_id, observed in cached.items()
    }


def _compare_unread(after_id: int) -> StepResult:
    page = recount.compare_unread(after_id)
    return StepResult(
        cursor=str(page.last_id),
        is_last=page.is_last,
        tally=Tally(users=page.users),
        findings=[
            Finding(reason, Subject(_UNREAD, "user", counter.user_id), details)
            for counter in page.wrong
            for reason, is_wrong, details in (
                (
                    _TOTAL,
                    counter.unread != counter.counted,
                    f"unread {counter.unread}, groups {counter.counted}",
                ),
                (
                    _BLOCKS,
                    counter.blocking != counter.blocks,
                    f"blocking {counter.blocking}, blocks {counter.blocks}",
                ),
            )
            if is_wrong
        ],
    )


def _compare_groups(after_id: int) -> StepResult:
    page = recount.compare_groups(after_id)
    return StepResult(
        cursor=str(page.last_id),
        is_last=page.is_last,
        tally=Tally(users=page.users),
        findings=[
            Finding(
                _FRESH,
                Subject(_GROUP + group.key.kind, *group.key.subject),
                f"fresh {group.fresh}, rows {group.counted}; since the list {group.fresh_after},"
                f" rows {group.counted_after}",
            )
            for group in page.wrong
        ]
        + [
            Finding(_SEQUENCE, Subject(_UNREAD, "user", user_id), f"{excess} below its groups")
            for user_id, excess in page.behind.items()
        ],
    )


def _repair(findings: Sequence[Finding]) -> int:
    """Recount groups under the locks of their subjects' counters and of their unread counters, and
    project the unread counters. One transaction of ten statements at most. Raises MysqlDown,
    RedisDown."""
    users = {f.subject.id for f in findings if f.subject.what == _UNREAD}
    kinds = {
        (f.subject.type, f.subject.id, f.subject.what.removeprefix(_GROUP))
        for f in findings
        if f.subject.what != _UNREAD
    }

    def work(cursor: Cursor) -> tuple[set[int], int]:
        owners = lookup.read_owners(cursor, sorted({key[:2] for key in kinds}))
        # A type that the deployment left out has none.
        owned = sorted(key for key in kinds if key[:2] in owners)
        if owned:
            counters.lock_targets(cursor, owned)
        keys = [GroupKey(owners[key[:2]], key[2], *key[:2]) for key in owned]
        return {*users, *owners.values()}, recount.repair(cursor, users, keys)

    recounted, corrected = counters.run_in_transaction(work)
    if recounted:
        queries.refresh_projections(sorted(recounted))
    record("unread_repaired", {"notifications_corrected": corrected}, findings=len(findings))
    return 0


_GROUPS = tuple(_GROUP + kind for kind in (COMMENT, FOLLOW, LIKE))
_ESTIMATE = partial(estimate_left, "unread_counter", "user_id")
CACHED = DerivedList(
    name="unread-cache", find_owner=owner_of_key, compare=compare, repair=drop_unread
)
COUNTERS = RollingComparison(
    name="unread",
    compare_range=_compare_unread,
    estimate_left=_ESTIMATE,
    reasons=(_TOTAL, _BLOCKS),
    repairs=(Repair(subjects=(_UNREAD, *_GROUPS), repair=_repair),),
)
GROUPS = RollingComparison(
    name="groups",
    compare_range=_compare_groups,
    estimate_left=_ESTIMATE,
    reasons=(_FRESH, _SEQUENCE),
)

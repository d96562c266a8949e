"""Outboxes: what Redis accepted and MySQL has not confirmed, sent again when it waits for too long.

An outbox is a hash of one member: a target, a user. Each shard has an index of its outboxes, a
zset: member -> when its oldest entry was accepted, or, after a sweep, when it is due again. Its
scripts include scripts/outbox.inc.lua. That covers an API function that died before the queue, an
unavailable queue, and a consumer that died before Redis was told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from plaza.infra import clock, redis
from plaza.infra.clock import Deadline
from plaza.infra.settings import settings
from plaza.infra.shards import SHARDS

T = TypeVar("T")

MAX_WAIT_US = 3_600_000_000  # between two sweeps of an outbox
MAX_BACKLOG = 10_000  # a queue that is further behind is fed nothing twice


class SweepResult(NamedTuple):
    """What a round came to: the entries that the queue took, the outboxes that were looked at, and
    the age of the oldest entry among those that had waited for too long."""

    sent: int
    outboxes: int
    age_s: float


def find_due(index_key: Callable[[int], str], before_us: int, limit: int) -> list[str]:
    """The members that are due since ``before_us``, at most ``limit`` a shard. One round trip.

    ``index_key`` names the index of a shard. Raises RedisDown.
    """
    answers = redis.pipeline(
        [
            ("ZRANGE", index_key(shard), "-inf", before_us, "BYSCORE", "LIMIT", 0, limit)
            for shard in range(SHARDS)
        ]
    )
    return [member for answer in answers for member in answer]


def sweep(
    find: Callable[[int], Sequence[T]],
    send_again: Callable[[Sequence[T], int, Deadline], tuple[int, Sequence[int]]],
    grace_us: int | None,
    max_entries: int,
    max_s: float,
) -> SweepResult:
    """Send again what waits for longer than ``grace_us``, until nothing is due, ``max_entries`` or
    so were sent, or ``max_s`` have passed; what is left is due at the next run.

    ``grace_us`` None: ``ResendAfter`` of the template. ``find`` returns outboxes that are due since
    a time in microseconds. ``send_again`` sweeps them with the grace until about a deadline; it
    returns how many entries the queue took, and when each that had waited was accepted. Raises what
    they raise.
    """
    if grace_us is None:
        grace_us = settings().resend_after_s * 1_000_000
    sent, outboxes, oldest_us, deadline = 0, 0, clock.now_us(), Deadline.in_s(max_s)
    while sent < max_entries and not deadline.has_passed:
        due = find(clock.now_us() - grace_us)
        if not due:
            break
        taken, accepted_us = send_again(due, grace_us, deadline)
        sent += taken
        outboxes += len(due)
        oldest_us = min([oldest_us, *accepted_us])
    return SweepResult(sent, outboxes, round(clock.now_s() - oldest_us / 1e6, 1))

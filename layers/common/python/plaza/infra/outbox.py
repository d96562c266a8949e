"""Outboxes: entries that Redis accepted and MySQL has not confirmed, sent again after a grace.

An outbox is the hash of one member, a target or a user. Each shard has an index of its outboxes, a
zset: member -> when its oldest entry was accepted, or, after a sweep, when it is due again. Scripts
include scripts/outbox.inc.lua. Sweeps cover an API function that died before it sent the event, an
unavailable queue, and a consumer that died before it acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from plaza.infra import clock, redis
from plaza.infra.clock import Deadline
from plaza.infra.hot_keys import Command
from plaza.infra.settings import settings
from plaza.infra.shards import SHARDS

T = TypeVar("T")

_SAMPLED_ENTRIES = 5

MAX_WAIT_US = 3_600_000_000  # between two sweeps of an outbox
MAX_BACKLOG = 10_000  # messages; with a longer backlog nothing is sent again


class OutboxDepth(NamedTuple):
    """The number of outboxes, and about the age in seconds of their oldest entry."""

    outboxes: int
    age_s: float


class SweepResult(NamedTuple):
    """The entries that were sent, the outboxes swept, and the age of the oldest overdue entry."""

    sent: int
    outboxes: int
    age_s: float


def find_due(index_key: Callable[[int], str], before_us: int, limit: int) -> list[str]:
    """Return the members due before ``before_us``, up to ``limit`` a shard.
    ``index_key`` returns the index of a shard. One round trip. Raises RedisDown."""
    replies = redis.pipeline(
        [
            ("ZRANGE", index_key(shard), "-inf", before_us, "BYSCORE", "LIMIT", 0, limit)
            for shard in range(SHARDS)
        ]
    )
    return [member for members in replies for member in members]


def measure(
    index_key: Callable[[int], str],
    outbox_key: Callable[[str], str],
    read_time_us: Callable[[str, str], int],
) -> OutboxDepth:
    """Return how many outboxes there are, and the age of the oldest of some of their entries.

    Looks at five random entries of each of the two oldest outboxes of a shard. ``outbox_key``
    returns the key of a member's outbox, ``read_time_us`` when an entry (field, value) was
    accepted. Two round trips. Raises RedisDown.
    """
    commands: list[Command] = []
    for shard in range(SHARDS):
        commands += [("ZCARD", index_key(shard)), ("ZRANGE", index_key(shard), 0, 1)]
    replies = redis.pipeline(commands)
    members = [member for found in replies[1::2] for member in found]
    times_us = [
        read_time_us(*entry)
        for entries in redis.pipeline(
            [("HRANDFIELD", outbox_key(m), _SAMPLED_ENTRIES, "WITHVALUES") for m in members]
        )
        for entry in zip(entries[::2], entries[1::2], strict=True)
    ]
    age_s = clock.now_s() - min(times_us) / 1e6 if times_us else 0.0
    return OutboxDepth(sum(replies[::2]), round(max(0.0, age_s), 1))


def sweep(
    find: Callable[[int], Sequence[T]],
    send_again: Callable[[Sequence[T], int, Deadline], tuple[int, Sequence[int]]],
    grace_us: int | None,
    max_entries: int,
    max_s: float,
) -> SweepResult:
    """Send entries again that are older than ``grace_us``; the rest stays due for the next run.

    Stops when nothing is due, after about ``max_entries``, or after ``max_s``. ``grace_us`` None
    means ``ResendAfter`` of the template. ``find`` returns the outboxes due before a time in
    microseconds. ``send_again`` sweeps them with the grace until about a deadline; it returns how
    many entries the queue accepted, and the times at which the overdue entries were accepted.
    Raises what they raise.
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

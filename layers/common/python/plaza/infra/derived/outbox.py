"""Outboxes: entries that Redis accepted and MySQL has not confirmed, sent again after
``resend_after_s``.

An outbox is the hash of one member, a target or a user. Each shard has an index of its outboxes, a
zset: member -> when its oldest entry was accepted, as of the last sweep. A time ahead of the clock
is due: the clock went back, or version 0.2.0 stored when to sweep the member again.

Each run of the sweeper looks at all members whose oldest entry is older than ``resend_after_s``. An
entry is due after ``resend_after_s``, and then whenever its age has doubled, at least once an hour.
The progress of a member's sweeps, a key of two hours, has the time of the last one; it is stored
after the entries were sent, so what a sweep found and did not send stays due. Scripts include
outbox.inc.lua. Sweeps cover an API function that died before it sent the event, an unavailable
queue, and a consumer that died before it acknowledged.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from plaza.infra.redis import redis
from plaza.infra.redis.commands import Call
from plaza.infra.redis.scripts import SHARED, load_script
from plaza.infra.redis.shards import SHARDS
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.settings import settings

M = TypeVar("M")
E = TypeVar("E")

CONFIRM_SWEEP = load_script(SHARED / "confirm_sweep.lua")

MAX_WAIT_US = 3_600_000_000  # until an entry is sent again
MAX_BACKLOG = 10_000  # messages; with a longer backlog nothing is sent again
_PROGRESS_TTL_S = 7_200  # longer than MAX_WAIT_US
_MAX_CLOCK_LEAD_US = 10_000_000  # a time in the index that is further ahead is due
_MEMBERS_PER_ROUND = 100
_ENTRIES_PER_SEND = 500  # a sweep that is cut off sends these again


class OutboxDepth(NamedTuple):
    """The number of outboxes, and the age in seconds of the oldest entry."""

    outboxes: int
    age_s: float


class SweepResult(NamedTuple):
    """The numbers of entries that were sent and of outboxes that were swept."""

    sent: int
    outboxes: int


class Progress(NamedTuple):
    """What a sweep of an outbox stores after its entries were sent; see confirm_sweep.lua.

    ``before`` and ``after``: the progress, '' for none; ``after`` is '' when the outbox is empty.
    ``oldest``: when the oldest entry was accepted, '' before the end of the scan.
    """

    key: str
    index_key: str
    member: str | int
    before: str
    after: str
    oldest: str


class SweptPage(NamedTuple, Generic[M, E]):
    """The due entries in a page of a member's outbox. ``code`` and ``db_version`` are of targets;
    the header of their sweep.lua has the codes."""

    member: M
    entries: Sequence[E]
    progress: Progress
    code: str = "SWEPT"
    db_version: int = 0

    @property
    def has_more(self) -> bool:
        """Whether the scan has further pages."""
        return bool(self.progress.after) and not self.progress.oldest


def find_due(index_key: Callable[[int], str], before_us: int, limit: int) -> list[str]:
    """Return members whose oldest entry was accepted before ``before_us``, up to ``limit`` a shard.
    Of more members each is as likely. ``index_key`` returns the index of a shard. Two round trips.
    Raises RedisDown."""
    ahead_us = max(before_us, clock.now_us() + _MAX_CLOCK_LEAD_US)
    keys = [index_key(shard) for shard in range(SHARDS)]
    replies = redis.pipeline(
        [
            command
            for key in keys
            for command in (
                ("ZCOUNT", key, "-inf", before_us),
                ("ZRANGE", key, f"({ahead_us}", "+inf", "BYSCORE", "LIMIT", 0, limit),
            )
        ]
    )
    members = [member for ahead in replies[1::2] for member in ahead]
    pages = redis.pipeline(
        [
            ("ZRANGE", key, "-inf", before_us, "BYSCORE", "LIMIT", first, size)
            for key, count in zip(keys, replies[::2], strict=True)
            for first, size in _choose_ranks(count, limit)
        ]
    )
    return [*members, *(member for part in pages for member in part)]


def _choose_ranks(count: int, limit: int) -> list[tuple[int, int]]:
    """Return (first rank, number) of ``limit`` of ``count`` members: from a random one on, and
    again from the first."""
    if count <= limit:
        return [(0, count)] if count else []
    first = random.randrange(count)
    wrapped = max(0, first + limit - count)
    return [(first, limit - wrapped), *([(0, wrapped)] if wrapped else [])]


def measure(index_key: Callable[[int], str]) -> OutboxDepth:
    """Return the number of outboxes and the age of the oldest entry. Of an outbox that is not empty
    for long, the age is as of its last sweep. One round trip. Raises RedisDown."""
    now_us = clock.now_us()
    commands: list[tuple[str | int, ...]] = []
    for key in map(index_key, range(SHARDS)):
        oldest = ("ZRANGE", key, "-inf", now_us, "BYSCORE", "LIMIT", 0, 1, "WITHSCORES")
        commands += [("ZCARD", key), oldest]
    replies = redis.pipeline(commands)
    times_us = [float(first[1]) for first in replies[1::2] if first]
    age_s = (now_us - min(times_us, default=now_us)) / 1e6
    return OutboxDepth(sum(replies[::2]), round(age_s, 1))


def sweep(
    find: Callable[[int], Sequence[M]],
    read_pages: Callable[[Sequence[M], int], Sequence[SweptPage[M, E]]],
    send_all: Callable[[Sequence[E], Deadline], int],
    resend_after_us: int | None,
    max_entries: int,
    max_s: float,
    repair: Callable[[Sequence[SweptPage[M, E]]], None] | None = None,
) -> SweepResult:
    """Send due entries again. Those that were not sent stay due for the next run.

    Stops after all members, after about ``max_entries``, or after ``max_s``. ``resend_after_us``
    None means ``ResendAfter`` of the template; with 0 all entries are due. ``find`` returns the
    members whose oldest entry was accepted before a time in microseconds, ``read_pages`` a page of
    each member's outbox. ``send_all`` returns how many entries the queue accepted until a deadline.
    ``repair`` gets the pages after they were sent. Three round trips for 100 members. Raises what
    they raise, and RedisDown.
    """
    if resend_after_us is None:
        resend_after_us = settings().resend_after_s * 1_000_000
    sent, outboxes, deadline = 0, 0, Deadline.in_s(max_s)
    members = list(find(clock.now_us() - resend_after_us))
    random.shuffle(members)
    while members and sent < max_entries and not deadline.has_passed:
        pages = read_pages(members[:_MEMBERS_PER_ROUND], resend_after_us)
        del members[:_MEMBERS_PER_ROUND]
        swept: list[SweptPage[M, E]] = []
        for group in _group_pages(pages):
            entries = [entry for page in group for entry in page.entries]
            accepted = send_all(entries, deadline)
            sent += accepted
            if accepted == len(entries):
                swept += group
        confirm_all([page.progress for page in swept])
        members += [page.member for page in swept if page.has_more]
        outboxes += len(pages)
        if repair:
            repair(pages)
    return SweepResult(sent, outboxes)


def _group_pages(
    pages: Sequence[SweptPage[M, E]],
) -> Iterator[Sequence[SweptPage[M, E]]]:
    """Yield groups of pages with about ``_ENTRIES_PER_SEND`` entries."""
    group: list[SweptPage[M, E]] = []
    entries = 0
    for page in pages:
        group.append(page)
        entries += len(page.entries)
        if entries >= _ENTRIES_PER_SEND:
            yield group
            group, entries = [], 0
    if group:
        yield group


def confirm_all(swept: Sequence[Progress]) -> None:
    """Store the progress of sweeps whose entries were sent. One round trip. Raises RedisDown."""
    redis.run_all(
        [
            Call(
                CONFIRM_SWEEP,
                (progress.key, progress.index_key),
                (progress.member, *progress[3:], _PROGRESS_TTL_S),
            )
            for progress in swept
            if progress.after
        ]
    )

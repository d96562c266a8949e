"""Timelines in Redis, in the shard of the user:

{<shard>}:user:<id>:inbox  zset  what those whom they follow posted
{<shard>}:user:<id>:posts  zset  what they posted themselves; of stars only

Both hold ``<post, 19 digits>:<author>`` -> when it was posted, microseconds since 1970: equal times
stand in the order of ids. An inbox holds ``star:<author>`` -> 0 for each star that is followed. And
minus a time, so that they are no posts:

    floor     above it the timeline is whole; it only rises
    built     when it was filled from MySQL; without it, it says nothing yet
    building  since when it is pushed to while somebody reads MySQL for it: the name of the build
    requested when somebody was last told to ask for a rebuild

The state of a build is in the timeline, not in a hash as that of ``infra.builds``: a timeline is
one key, whatever its state, for pushes that look at many. And a build is not refused while another
is under way, but joins it: both fill in what MySQL has, in one page, and pushes add the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from plaza.content import ListPosition
from plaza.feed.model import INBOX, MAX_FLOOR_US, MIN_FLOOR_US, FeedEntry, Timeline
from plaza.infra import redis
from plaza.infra.lua import load_script
from plaza.infra.redis import Call
from plaza.infra.shards import shard_of

READ_TTL_MS = 30 * 86_400_000
UNBUILT_TTL_MS = 3_600_000
REQUEST_INTERVAL_US = 10_000_000
REBUILD_AFTER_US = 86_400_000_000
MIN_REBUILD_AGE_US = 60_000_000
MAX_TIMELINES_PER_CALL = 16
MAX_STARS_PER_CALL = 500
_AT_ONCE = 2_000

_LUA = Path(__file__).with_name("lua")
READ_PAGE = load_script(_LUA / "read_page.lua")
PUSH = load_script(_LUA / "push.lua")
BEGIN = load_script(_LUA / "begin.lua")
FILL = load_script(_LUA / "fill.lua")
REMOVE = load_script(_LUA / "remove.lua")


class TimelinePage(NamedTuple):
    """What a timeline says: the ``newest`` past a place, as many as were asked for, all above
    ``floor_us``. ``rebuild_due``: the caller is the one to ask for a rebuild."""

    floor_us: int
    rebuild_due: bool
    stars: list[int]
    newest: list[FeedEntry]


class Push(NamedTuple):
    """What goes into a timeline. ``floor_us``: above it, ``entries`` is all of its authors."""

    timeline: Timeline
    entries: Sequence[FeedEntry]
    stars: Sequence[int] = ()
    floor_us: int = MIN_FLOOR_US


def key(timeline: Timeline) -> str:
    """Where a timeline is."""
    user = f"user:{timeline.user_id}"
    return f"{{{shard_of(user)}}}:{user}:{timeline.kind}"


def read_pages(
    timelines: Iterable[Timeline], after: ListPosition | None, count: int
) -> list[TimelinePage]:
    """A page of each of ``timelines``, past ``after``. One round trip. Raises RedisDown."""
    begin: tuple[int | str, str] = ("+inf", "")
    if after is not None:
        begin = (after.created_us, f"{after.id:019d}")
    waits = (READ_TTL_MS, UNBUILT_TTL_MS, REQUEST_INTERVAL_US, REBUILD_AFTER_US)
    answers = redis.run_all(
        [Call(READ_PAGE, (key(t),), (*begin, count, *waits)) for t in timelines]
    )
    return [_parse_page(*answer) for answer in answers]


def push_all(pushes: Iterable[Push]) -> int:
    """Add to those timelines that somebody keeps; how many that were. A round trip for 2,000.

    Raises RedisDown.
    """
    pushed, todo = 0, iter(pushes)
    while some := list(islice(todo, _AT_ONCE)):
        calls = [
            Call(PUSH, (key(p.timeline),), (p.timeline.cap, p.floor_us, *_members(p))) for p in some
        ]
        pushed += sum(redis.run_all(calls))
    return pushed


def push_to_inboxes(user_ids: Sequence[int], entry: FeedEntry, star: bool) -> int:
    """Add a post (and ``star``: that its author is one) to the inboxes of all of ``user_ids``.

    How many of them have one. One round trip; inboxes of one shard share runs of the script.
    Raises RedisDown.
    """
    stars = [entry.author_id] if star else []
    push = Push(Timeline(INBOX, 0), [entry], stars)
    args = (push.timeline.cap, push.floor_us, *_members(push))
    by_shard: dict[int, list[str]] = {}
    for user_id in user_ids:
        user = f"user:{user_id}"
        shard = shard_of(user)
        by_shard.setdefault(shard, []).append(f"{{{shard}}}:{user}:{INBOX}")
    calls = [
        Call(PUSH, keys[start : start + MAX_TIMELINES_PER_CALL], args)
        for keys in by_shard.values()
        for start in range(0, len(keys), MAX_TIMELINES_PER_CALL)
    ]
    return sum(redis.run_all(calls))


def remove_authors(authors: Sequence[tuple[Timeline, int]]) -> None:
    """Take authors out of timelines. One round trip. Raises RedisDown."""
    redis.run_all([Call(REMOVE, (key(timeline),), (author,)) for timeline, author in authors])


def remove_entries(timelines: Iterable[Timeline], entries: Sequence[FeedEntry]) -> None:
    """Take posts that are no more out of timelines. One round trip. Raises RedisDown."""
    members = [_member(entry) for entry in entries]
    redis.pipeline([("ZREM", key(timeline), *members) for timeline in timelines])


def find_existing(timelines: Sequence[Timeline]) -> list[Timeline]:
    """Those that somebody keeps. One round trip. Raises RedisDown."""
    answers = redis.pipeline([("EXISTS", key(timeline)) for timeline in timelines])
    return [t for t, there in zip(timelines, answers, strict=True) if there]


def begin_all(timelines: Sequence[Timeline]) -> dict[Timeline, int]:
    """The name of the build of each that is to be rebuilt. One round trip. Raises RedisDown."""
    answers = redis.run_all(
        [Call(BEGIN, (key(t),), (MIN_REBUILD_AGE_US, UNBUILT_TTL_MS)) for t in timelines]
    )
    return {t: build for t, build in zip(timelines, answers, strict=True) if build}


def fill_all(builds: Sequence[tuple[int, Push]]) -> int:
    """Fill timelines; how many still were those of their builds. One round trip; one more if
    stars are followed.

    Raises RedisDown.
    """
    push_all(
        Push(push.timeline, [], push.stars[start : start + MAX_STARS_PER_CALL])
        for _, push in builds
        for start in range(0, len(push.stars), MAX_STARS_PER_CALL)
    )
    calls = [
        Call(
            FILL,
            (key(push.timeline),),
            (
                build,
                push.timeline.cap,
                push.floor_us,
                READ_TTL_MS,
                *_members(push._replace(stars=())),
            ),
        )
        for build, push in builds
    ]
    return sum(redis.run_all(calls))


def _parse_page(
    floor_us: int, rebuild_due: int, stars: Sequence[str], found: Sequence[str]
) -> TimelinePage:
    pairs = iter(found)
    entries = []
    for member, score in zip(pairs, pairs, strict=True):
        post_id, _, author_id = member.partition(":")
        entries.append(FeedEntry(int(float(score)), int(post_id), int(author_id)))
    ids = [int(star.partition(":")[2]) for star in stars]
    return TimelinePage(floor_us or MAX_FLOOR_US, rebuild_due == 1, ids, entries)


def _member(entry: FeedEntry) -> str:
    return f"{entry.id:019d}:{entry.author_id}"


def _members(push: Push) -> list[int | str]:
    members: list[int | str] = []
    for entry in push.entries:
        members += [entry.created_us, _member(entry)]
    for star in push.stars:
        members += [0, f"star:{star}"]
    return members

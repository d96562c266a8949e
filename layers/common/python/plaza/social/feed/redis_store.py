"""Timelines in Redis, in the shard of the user:

{<shard>}:user:<id>:inbox  zset  posts of followed users
{<shard>}:user:<id>:posts  zset  the user's own posts; of celebrities only
{<shard>}:user:<id>:older  hash  what pages below the inbox read from MySQL, for OLDER_TTL_S:
                                 number of a part -> OLDER_PART; generation, of the follows

Members are ``<post, 19 digits>:<author>`` -> created, microseconds since 1970; posts of equal time
sort by id. An inbox also has ``celebrity:<author>`` -> 0 for each followed celebrity. The members
below have minus a time in microseconds as their score, which sorts them apart from posts:

    floor      the timeline is complete above it; it only rises
    built      time of the last fill from MySQL; without it the timeline must not be read
    building   start of the running build, and its name; the timeline already accepts pushes
    requested  time of the last request for a rebuild

The state of a build is in the timeline, not in a hash as with ``infra.derived.builds``, so that a
push needs one key a timeline. A second build joins a running one: both add one page of MySQL's
posts, and pushes add the newer ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from types import GenericAlias
from typing import NamedTuple

from plaza.infra.redis import redis
from plaza.infra.redis.commands import Call, Command
from plaza.infra.redis.scripts import load_script
from plaza.infra.redis.shards import shard_of
from plaza.infra.runtime import clock
from plaza.infra.runtime.codec import Codec, json_codec, row_type, values_of
from plaza.social.content.model import ListCursor
from plaza.social.feed.model import (
    INBOX,
    MAX_FLOOR_US,
    MIN_FLOOR_US,
    FeedEntry,
    OlderPart,
    Timeline,
)

READ_TTL_MS = 30 * 86_400_000
UNBUILT_TTL_MS = 3_600_000
REQUEST_INTERVAL_US = 10_000_000
REBUILD_AFTER_US = 86_400_000_000
MIN_REBUILD_AGE_US = 60_000_000
OLDER_TTL_S = 600
MAX_TIMELINES_PER_CALL = 16
MAX_CELEBRITIES_PER_CALL = 500
_MAX_PUSHES_PER_TRIP = 2_000
_POST = re.compile(r"\d{19}:[1-9]\d{0,18}", re.ASCII)

_GENERATION = "generation"
OLDER_PART: Codec[OlderPart] = json_codec(
    "older_posts",
    row_type(
        OlderPart,
        top=row_type(ListCursor),
        bottom=row_type(ListCursor),
        entries=GenericAlias(list, (row_type(FeedEntry),)),
    ),
    lambda row: OlderPart(
        row.of,
        row.generation,
        ListCursor(*values_of(row.top)),
        ListCursor(*values_of(row.bottom)),
        row.window_us,
        [FeedEntry(*values_of(entry)) for entry in row.entries],
    ),
)

_LUA = Path(__file__).with_name("lua")
READ_PAGE = load_script(_LUA / "read_page.lua")
PUSH = load_script(_LUA / "push.lua")
BEGIN = load_script(_LUA / "begin.lua")
FILL = load_script(_LUA / "fill.lua")
REMOVE = load_script(_LUA / "remove.lua")


class TimelinePage(NamedTuple):
    """The ``newest`` entries past a cursor and above ``floor_us``. ``rebuild_due``: the reader
    must request a rebuild."""

    floor_us: int
    rebuild_due: bool
    celebrities: list[int]
    newest: list[FeedEntry]


class Push(NamedTuple):
    """Entries for a timeline, complete for their authors above ``floor_us``, and celebrities."""

    timeline: Timeline
    entries: Sequence[FeedEntry]
    celebrities: Sequence[int] = ()
    floor_us: int = MIN_FLOOR_US


def key(timeline: Timeline) -> str:
    user = f"user:{timeline.user_id}"
    return f"{{{shard_of(user)}}}:{user}:{timeline.kind}"


def read_pages(
    timelines: Iterable[Timeline], after: ListCursor | None, count: int
) -> list[TimelinePage]:
    """Return a page past ``after`` of each of ``timelines``. One round trip. Raises RedisDown."""
    begin: tuple[int | str, str] = ("+inf", "")
    if after is not None:
        begin = (after.created_us, f"{after.id:019d}")
    durations = (READ_TTL_MS, UNBUILT_TTL_MS, REQUEST_INTERVAL_US, REBUILD_AFTER_US)
    replies = redis.run_all(
        [Call(READ_PAGE, (key(t),), (*begin, count, *durations)) for t in timelines]
    )
    return [_parse_page(*reply) for reply in replies]


def read_whole(timelines: Sequence[Timeline]) -> dict[Timeline, TimelinePage]:
    """Return all entries of the timelines that are built, also those below the floor, and change no
    expiry. One round trip. Raises RedisDown."""
    replies = redis.pipeline([("ZRANGE", key(t), 0, -1, "WITHSCORES") for t in timelines])
    whole: dict[Timeline, TimelinePage] = {}
    for timeline, reply in zip(timelines, replies, strict=True):
        pairs = iter(reply)
        scores = {member: int(float(score)) for member, score in zip(pairs, pairs, strict=True)}
        if "built" in scores and "floor" in scores:
            celebrities = [member for member in scores if member.startswith("celebrity:")]
            posts = [
                part
                for member, score in scores.items()
                if _POST.fullmatch(member)
                for part in (member, str(score))
            ]
            whole[timeline] = _parse_page(-scores["floor"], 0, celebrities, posts)
    return whole


def older_key(user_id: int) -> str:
    """Return the key of what a reader's pages below the inbox read from MySQL."""
    user = f"user:{user_id}"
    return f"{{{shard_of(user)}}}:{user}:older"


def read_older(user_id: int) -> tuple[str, dict[int, OlderPart]]:
    """Return the generation of a reader's follows, and number -> the parts of it that are kept. One
    round trip. Raises RedisDown."""
    fields = redis.execute("HGETALL", older_key(user_id))
    generation = fields.pop(_GENERATION, "")
    parts = {
        int(number): part
        for number, text in fields.items()
        if number.isdigit() and (part := OLDER_PART.read(text)) and part.generation == generation
    }
    return generation, parts


def store_older(user_id: int, number: int, part: OlderPart) -> None:
    """Keep a part for the next pages. One round trip. Raises RedisDown."""
    key = older_key(user_id)
    redis.pipeline([("HSET", key, number, OLDER_PART.encode(part)), ("EXPIRE", key, OLDER_TTL_S)])


def drop_older(user_id: int) -> None:
    """Delete the parts of a reader. One round trip. Raises RedisDown."""
    redis.execute("UNLINK", older_key(user_id))


def mark_follows(user_ids: Iterable[int]) -> set[int]:
    """Invalidate the parts that are kept for readers whose follows changed; return the readers that
    have an inbox. One round trip. Raises RedisDown.

    A part that a page has read before the change, and stores after it, is of the former generation.
    """
    readers, generation = list(user_ids), clock.now_us()
    commands: list[Command] = [("EXISTS", key(Timeline(INBOX, reader))) for reader in readers]
    for reader in readers:
        older = older_key(reader)
        commands += [("HSET", older, _GENERATION, generation), ("EXPIRE", older, OLDER_TTL_S)]
    replies = redis.pipeline(commands)
    return {reader for reader, exists in zip(readers, replies, strict=False) if exists}


def push_all(pushes: Iterable[Push]) -> int:
    """Push to those timelines that exist; return their number. One round trip a 2,000 pushes.
    Raises RedisDown."""
    pushed, rest = 0, iter(pushes)
    while part := list(islice(rest, _MAX_PUSHES_PER_TRIP)):
        calls = [
            Call(PUSH, (key(p.timeline),), (p.timeline.cap, p.floor_us, *_members(p))) for p in part
        ]
        pushed += sum(redis.run_all(calls))
    return pushed


def push_to_inboxes(user_ids: Sequence[int], entry: FeedEntry, celebrity: bool) -> int:
    """Add a post, and its author as a celebrity if ``celebrity``, to the existing inboxes of
    ``user_ids``.

    Return the number of inboxes. One round trip, with one run of the script for up to 16 inboxes of
    a shard. Raises RedisDown.
    """
    celebrities = [entry.author_id] if celebrity else []
    push = Push(Timeline(INBOX, 0), [entry], celebrities)
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
    """Remove authors from timelines. One round trip. Raises RedisDown."""
    redis.run_all([Call(REMOVE, (key(timeline),), (author,)) for timeline, author in authors])


def remove_entries(timelines: Iterable[Timeline], entries: Sequence[FeedEntry]) -> None:
    """Remove deleted posts from timelines. One round trip. Raises RedisDown."""
    members = [_member(entry) for entry in entries]
    redis.pipeline([("ZREM", key(timeline), *members) for timeline in timelines])


def drop(timelines: Iterable[Timeline]) -> None:
    """Delete timelines. One round trip. Raises RedisDown."""
    redis.pipeline(redis.delete_commands(key(timeline) for timeline in timelines))


def begin_all(timelines: Sequence[Timeline]) -> dict[Timeline, int]:
    """Begin builds; return their names by timeline, without the timelines built within a minute.
    One round trip. Raises RedisDown."""
    replies = redis.run_all(
        [Call(BEGIN, (key(t),), (MIN_REBUILD_AGE_US, UNBUILT_TTL_MS)) for t in timelines]
    )
    return {t: build for t, build in zip(timelines, replies, strict=True) if build}


def fill_all(builds: Sequence[tuple[int, Push]]) -> int:
    """Fill timelines; return how many accepted it, because their build was still the current one.
    One round trip, and one more if celebrities are followed. Raises RedisDown."""
    push_all(
        Push(push.timeline, [], push.celebrities[start : start + MAX_CELEBRITIES_PER_CALL])
        for _, push in builds
        for start in range(0, len(push.celebrities), MAX_CELEBRITIES_PER_CALL)
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
                *_members(push._replace(celebrities=())),
            ),
        )
        for build, push in builds
    ]
    return sum(redis.run_all(calls))


def _parse_page(
    floor_us: int, rebuild_due: int, celebrities: Sequence[str], members: Sequence[str]
) -> TimelinePage:
    pairs = iter(members)
    entries = []
    for member, score in zip(pairs, pairs, strict=True):
        post_id, _, author_id = member.partition(":")
        entries.append(FeedEntry(int(float(score)), int(post_id), int(author_id)))
    ids = [int(celebrity.partition(":")[2]) for celebrity in celebrities]
    return TimelinePage(floor_us or MAX_FLOOR_US, rebuild_due == 1, ids, entries)


def _member(entry: FeedEntry) -> str:
    return f"{entry.id:019d}:{entry.author_id}"


def _members(push: Push) -> list[int | str]:
    members: list[int | str] = []
    for entry in push.entries:
        members += [entry.created_us, _member(entry)]
    for celebrity in push.celebrities:
        members += [0, f"celebrity:{celebrity}"]
    return members

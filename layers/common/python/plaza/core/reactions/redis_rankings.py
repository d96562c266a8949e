"""Rankings of posts in Redis: of all time, updated by consumers; of a window, replaced as a whole.
A read or write costs one round trip and raises RedisDown.

    {<shard>}:ranking:<window>           zset    post, in 19 digits -> likes: ties sort by id
    {<shard>}:ranking:<window>:built_at  string  build time, microseconds; incomplete without it

and for the ranking of all time:

    {<shard>}:ranking:all:versions    hash    post -> newest version of its counter
    {<shard>}:ranking:all:updated_at  zset    post -> time of its last update; old ones are dropped
    {<shard>}:ranking:all:part        string  name of the last part that a build has stored
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

from plaza.core.reactions.model import MAX_RANKED, MAX_RANKING_LISTED, PostLikes, PostRank, Window
from plaza.infra.derived.projections import key_of
from plaza.infra.redis import redis
from plaza.infra.redis.commands import Call, RunAll
from plaza.infra.redis.scripts import load_script

MAX_VERSIONS = 10_000
VERSION_TTL_S = 120  # longer than the delay of an update: a consumer runs for 30 s at most
_MAX_POSTS_PER_CALL = 250
_MAX_VERSIONS_DROPPED = 250  # by one call, besides as many as it adds

_LUA = Path(__file__).with_name("lua")
PROJECT_RANKING = load_script(_LUA / "project_ranking.lua")
PAGE_RANKING = load_script(_LUA / "page_ranking.lua")
SWAP_RANKING = load_script(_LUA / "swap_ranking.lua")


def ranking_key(window: Window) -> str:
    return key_of("ranking", window)


def built_at_key(window: Window) -> str:
    """Return the key of a ranking's build time, in microseconds."""
    return f"{ranking_key(window)}:built_at"


def version_keys() -> tuple[str, str]:
    """Return the keys of the posts' versions and of the times of their updates."""
    key = ranking_key("all")
    return f"{key}:versions", f"{key}:updated_at"


def last_part_key() -> str:
    """Return the key of the name of the last part that a build has stored."""
    return f"{ranking_key('all')}:part"


def project_likes(posts: Sequence[PostLikes]) -> None:
    """Store the likes of posts in the ranking of all time."""
    redis.run_all([_projection(part) for part in _parts(posts)])


def _parts(posts: Sequence[PostLikes]) -> list[Sequence[PostLikes]]:
    """Split ``posts`` into calls, between which Redis serves other clients."""
    size = _MAX_POSTS_PER_CALL
    return [posts[start : start + size] for start in range(0, len(posts), size)]


def _projection(
    posts: Sequence[PostLikes], before: str = "", name: str = "", complete_at: str = ""
) -> Call:
    keys = (ranking_key("all"), *version_keys(), built_at_key("all"), last_part_key())
    triples = [x for p in posts for x in (_member(p.post_id), p.likes, p.version)]
    limits = (MAX_RANKED, MAX_VERSIONS, VERSION_TTL_S, _MAX_VERSIONS_DROPPED)
    return Call(PROJECT_RANKING, keys, (*limits, before, name, complete_at, *triples))


def read_ranked_posts() -> tuple[set[int], dict[int, int]]:
    """Return all posts in the ranking of all time, and post -> version: also of some that are not
    in it."""
    versions, _ = version_keys()
    ranked, fields = redis.pipeline([("ZRANGE", ranking_key("all"), 0, -1), ("HGETALL", versions)])
    return set(map(int, ranked)), {int(post): int(version) for post, version in fields.items()}


def forget_posts(post_ids: Iterable[int]) -> None:
    """Remove posts from the ranking of all time, with their versions."""
    members = [_member(post_id) for post_id in post_ids]
    versions, updated_at = version_keys()
    if members:
        redis.pipeline(
            [
                ("ZREM", ranking_key("all"), *members),
                ("HDEL", versions, *members),
                ("ZREM", updated_at, *members),
            ]
        )


def mark_ranking_complete(most_liked: Sequence[PostLikes], at_us: int) -> None:
    """Store the posts of the ranking of all time, at most ``MAX_RANKED``, and mark it complete.

    Each part names the one before it: a Redis that lost data in between has lost that name too, and
    the ranking stays incomplete.
    """
    redis.run_all(full_projection(most_liked, at_us))


def full_projection(most_liked: Sequence[PostLikes], at_us: int) -> list[Call]:
    """Return the calls that store all posts; the last one marks the ranking complete."""
    parts: list[Sequence[PostLikes]] = _parts(most_liked) or [()]
    refresh = secrets.token_hex(8)
    return [
        _projection(
            part,
            before="0" if number == 1 else f"{refresh}:{number - 1}",
            name=f"{refresh}:{number}",
            complete_at=str(at_us) if number == len(parts) else "",
        )
        for number, part in enumerate(parts, 1)
    ]


def swap_ranking(window: Window, ranked: Iterable[PostRank], at_us: int) -> bool:
    """Replace a ranking by ``ranked``, built at ``at_us``; False when the stored one is newer."""
    pairs = [x for likes, post_id in ranked for x in (likes, _member(post_id))]
    return bool(
        redis.run(SWAP_RANKING, (ranking_key(window), built_at_key(window)), (at_us, *pairs))
    )


def read_ranking(
    window: Window, after: PostRank | None, limit: int, source: RunAll = redis.run_all
) -> list[PostRank] | None:
    """Return at most ``limit`` of the first 1,000 posts, after ``after``; None when incomplete."""
    begin = (after.likes, _member(after.post_id)) if after else ("", "")
    keys = (ranking_key(window), built_at_key(window))
    [reply] = source([Call(PAGE_RANKING, keys, (*begin, limit, MAX_RANKING_LISTED))], ())
    if reply is None:
        return None
    pairs = iter(reply)
    return [PostRank(int(float(s)), int(m)) for m, s in zip(pairs, pairs, strict=True)]


def drop_rankings() -> int:
    """Delete the rankings of all windows; return how many keys there were. Readers get 503 until
    RefreshRankings has built them again."""
    keys = [*version_keys(), last_part_key()]
    for window in get_args(Window):
        keys += [ranking_key(window), built_at_key(window)]
    return sum(redis.pipeline([("UNLINK", key) for key in keys]))


def _member(post_id: int) -> str:
    return f"{post_id:019d}"

"""Rankings of posts in Redis: of all time, kept up by consumers; of a window, put in place whole.

    {<shard>}:ranking:<window>       zset    post, in 19 digits -> likes: equals stand by their id
    {<shard>}:ranking:<window>:built_at  string  of when it is, microseconds; it is whole from then on

and of all time besides:

    {<shard>}:ranking:all:versions hash  post -> the newest version of its counter that was heard
    {<shard>}:ranking:all:updated_at  zset  post -> when; what was heard long ago is forgotten
    {<shard>}:ranking:all:part   string  the last part that came of a ranking that is made whole
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path

from plaza.infra import redis
from plaza.infra.lua import load_script
from plaza.infra.projections import key_of
from plaza.infra.redis import Call
from plaza.reactions.model import MAX_RANKED, MAX_RANKING_LISTED, PostLikes, PostRank, Window

MAX_VERSIONS = 10_000
VERSION_TTL_S = 120  # a consumer runs 30 s at most, so nothing is later than that
_MAX_POSTS_PER_CALL = 250
_MAX_VERSIONS_DROPPED = 250  # versions of one call, besides as many as it adds

_LUA = Path(__file__).with_name("lua")
PROJECT_RANKING = load_script(_LUA / "project_ranking.lua")
PAGE_RANKING = load_script(_LUA / "page_ranking.lua")
SWAP_RANKING = load_script(_LUA / "swap_ranking.lua")


def ranking_key(window: Window) -> str:
    """Where the ranking is."""
    return key_of("ranking", window)


def built_at_key(window: Window) -> str:
    """Where it stands of when it is."""
    return f"{ranking_key(window)}:built_at"


def version_keys() -> tuple[str, str]:
    """Where it stands what was heard of posts, and when."""
    key = ranking_key("all")
    return f"{key}:versions", f"{key}:updated_at"


def last_part_key() -> str:
    """The key that names the last part of a ranking that is being made whole."""
    return f"{ranking_key('all')}:part"


def project_likes(posts: Sequence[PostLikes]) -> None:
    """Tell the ranking of all time. One round trip. Raises RedisDown."""
    redis.run_all([_projection(part) for part in _parts(posts)])


def _parts(posts: Sequence[PostLikes]) -> list[Sequence[PostLikes]]:
    """As many as one run of the script takes: Redis serves others in between."""
    size = _MAX_POSTS_PER_CALL
    return [posts[start : start + size] for start in range(0, len(posts), size)]


def _projection(
    posts: Sequence[PostLikes], before: str = "", name: str = "", complete_at: str = ""
) -> Call:
    keys = (ranking_key("all"), *version_keys(), built_at_key("all"), last_part_key())
    triples = [x for p in posts for x in (_member(p.post_id), p.likes, p.version)]
    limits = (MAX_RANKED, MAX_VERSIONS, VERSION_TTL_S, _MAX_VERSIONS_DROPPED)
    return Call(PROJECT_RANKING, keys, (*limits, before, name, complete_at, *triples))


def read_ranked_posts() -> list[int]:
    """All that the ranking of all time holds. Raises RedisDown."""
    return [int(member) for member in redis.execute("ZRANGE", ranking_key("all"), 0, -1)]


def mark_ranking_complete(most_liked: Sequence[PostLikes], at_us: int) -> None:
    """Tell the ranking of all time its posts, at most ``MAX_RANKED``; from now on it may be read.

    The parts form a chain: a Redis that lost its data, or the newest of it, in between has lost the
    name of a part too, and is not marked. One round trip. Raises RedisDown.
    """
    redis.run_all(full_projection(most_liked, at_us))


def full_projection(most_liked: Sequence[PostLikes], at_us: int) -> list[Call]:
    """Returns the calls that tell the ranking all its posts; the last one marks it whole."""
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
    """Put ``ranked``, as of ``at_us``, in place; False when a newer one is. Raises RedisDown."""
    pairs = [x for likes, post_id in ranked for x in (likes, _member(post_id))]
    return bool(
        redis.run(SWAP_RANKING, (ranking_key(window), built_at_key(window)), (at_us, *pairs))
    )


def read_ranking(window: Window, after: PostRank | None, limit: int) -> list[PostRank] | None:
    """At most ``limit`` of the first 1,000, those behind ``after``; None when it isn't whole.

    Raises RedisDown.
    """
    begin = (after.likes, _member(after.post_id)) if after else ("", "")
    answer = redis.run(
        PAGE_RANKING,
        (ranking_key(window), built_at_key(window)),
        (*begin, limit, MAX_RANKING_LISTED),
    )
    if answer is None:
        return None
    pairs = iter(answer)
    return [PostRank(int(float(s)), int(m)) for m, s in zip(pairs, pairs, strict=True)]


def _member(post_id: int) -> str:
    return f"{post_id:019d}"

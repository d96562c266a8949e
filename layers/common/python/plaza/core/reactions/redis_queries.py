"""Reads of totals, states and pages of actors from Redis. Each function costs one round trip, more
when a node restarts meanwhile, and raises RedisDown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from plaza.core.reactions.at import parse_order
from plaza.core.reactions.kinds import Kind
from plaza.core.reactions.model import Reactor, Target
from plaza.core.reactions.redis_keys import (
    idle_ttl_ms,
    keys_of,
    run_on_known_nodes,
    term_of,
    terms_of,
)
from plaza.infra.redis import redis
from plaza.infra.redis.commands import Argument, Call, RunAll
from plaza.infra.redis.scripts import load_script
from plaza.infra.redis.shards import group_by_tag

EARLIEST_TTL_S = 3_600
_TARGETS_PER_CALL = 50
_KEYS_OF_READ = 5

_LUA = Path(__file__).with_name("lua")
READ = load_script(_LUA / "read.lua")
PAGE = load_script(_LUA / "page.lua")
CACHE_EARLIEST = load_script(_LUA / "cache_earliest.lua")


class CachedCount(NamedTuple):
    """A target's total and its order token, and the actor's state in Redis (None: it has to be read
    from MySQL)."""

    total: int
    viewer_state: bool | None
    rebuild: bool
    at: str | None = None


def read_all(
    pairs: Sequence[tuple[Kind, Target]],
    actor_id: int | None,
    source: RunAll = redis.run_all,
) -> list[CachedCount | None]:
    """Return the count of each of ``pairs``, None for a target that is not loaded.

    ``source`` may be a replica for an anonymous caller; the master, too, is read for what it lacks.
    """
    # A replica does not renew the TTL: what is read often is read from the master as well.
    actor, ttl_ms = "" if actor_id is None else actor_id, idle_ttl_ms()
    if source is not redis.run_all:
        ttl_ms = 0
    all_keys = [keys_of(kind.name, target) for kind, target in pairs]
    groups = group_by_tag([keys.meta for keys in all_keys], _TARGETS_PER_CALL)

    firsts = [all_keys[group[0]] for group in groups]

    def calls() -> list[Call]:
        return [
            Call(
                READ,
                [key for i in group for key in all_keys[i][:_KEYS_OF_READ]],
                (term, actor, ttl_ms),
            )
            for group, term in zip(groups, terms_of(firsts), strict=True)
        ]

    counts: list[CachedCount | None] = [None] * len(pairs)
    for group, replies in zip(
        groups, run_on_known_nodes(firsts, calls, source=source), strict=True
    ):
        for i, reply in zip(group, replies, strict=True):
            if reply:
                total, state, rebuild, *order = reply
                is_on = None if state == "" else state == "1"
                counts[i] = CachedCount(total, is_on, rebuild == 1, parse_order(*order))
    if source is not redis.run_all and None in counts:
        return read_all(pairs, actor_id)
    return counts


def read_page(
    kind: Kind,
    target: Target,
    after: Reactor | None,
    latest: bool,
    count: int,
    source: RunAll = redis.run_all,
) -> tuple[bool, list[Reactor]] | None:
    """Return (is_complete, the page from ``after`` on), or None when the target is not loaded in
    ``source``.

    It is complete when recent has all actors, and when it is the cached first page of the earliest.
    Otherwise it has only the actors in recent. The page has ``count`` actors or more, including
    those with the version of ``after``; of the earliest at most the cached ones.
    """
    keys = keys_of(kind.name, target)
    begin = after.version_us if after else ("+inf" if latest else "-inf")
    order = "desc" if latest else "asc"

    def calls() -> list[Call]:
        args = (term_of(keys), begin, order, count)
        return [Call(PAGE, (keys.meta, keys.recent, keys.earliest), args)]

    [reply] = run_on_known_nodes([keys], calls, source=source)
    if not reply:
        return None
    pairs = iter(reply[1:])
    return reply[0] > 0, [
        Reactor(int(actor), int(float(version)))
        for actor, version in zip(pairs, pairs, strict=True)
    ]


def read_newest(pairs: Sequence[tuple[Kind, Target]], count: int) -> list[list[Reactor] | None]:
    """Return the ``count`` newest actors of each of ``pairs``, newest first; None for a target that
    is not loaded, or of which recent has fewer actors and not all."""
    all_keys = [keys_of(kind.name, target) for kind, target in pairs]

    def calls() -> list[Call]:
        return [
            Call(PAGE, (keys.meta, keys.recent, keys.earliest), (term, "+inf", "desc", count))
            for keys, term in zip(all_keys, terms_of(all_keys), strict=True)
        ]

    pages: list[list[Reactor] | None] = []
    for reply in run_on_known_nodes(all_keys, calls) if pairs else ():
        actors = iter(reply[1:] if reply else ())
        page = [
            Reactor(int(actor), int(float(version)))
            for actor, version in zip(actors, actors, strict=True)
        ]
        is_enough = reply and (reply[0] > 0 or len(page) >= count)
        pages.append(page if is_enough else None)
    return pages


def cache_earliest(
    kind: Kind, target: Target, db_version: int, earliest: Sequence[Reactor]
) -> bool:
    """Cache the first page of the earliest actors, of which there must be more, as read at
    ``db_version``. False when the target is not loaded or has a newer version."""
    keys = keys_of(kind.name, target)
    args: list[Argument] = [
        term_of(keys),
        db_version,
        earliest[-1].version_us,
        EARLIEST_TTL_S * 1000,
    ]
    for actor_id, version_us in earliest:
        args += [version_us, actor_id]
    return bool(redis.run(CACHE_EARLIEST, (keys.meta, keys.earliest), args) == 1)

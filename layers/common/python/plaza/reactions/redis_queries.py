"""Totals, states and pages of actors, as Redis has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from plaza.infra import redis
from plaza.infra.hot_keys import Argument
from plaza.infra.lua import load_script
from plaza.infra.redis import Call, RedisDown
from plaza.reactions.model import Kind, Reactor, Target
from plaza.reactions.redis_keys import TargetKeys, idle_ttl_ms, keys_of, run_id_of

EARLIEST_TTL_S = 3_600
_MAX_ATTEMPTS = 3

_LUA = Path(__file__).with_name("lua")
READ = load_script(_LUA / "read.lua")
PAGE = load_script(_LUA / "page.lua")
CACHE_EARLIEST = load_script(_LUA / "cache_earliest.lua")


class CachedCount(NamedTuple):
    """What Redis knows of a target: its total, and if the calling actor is on (None: ask MySQL)."""

    total: int
    viewer_state: bool | None
    rebuild: bool


def read_all(
    wanted: Sequence[tuple[Kind, Target]], actor_id: int | None
) -> list[CachedCount | None]:
    """What Redis knows of each of ``wanted``; None for what is not loaded. One round trip.

    Raises RedisDown.
    """
    actor, ttl_ms = "" if actor_id is None else actor_id, idle_ttl_ms()
    all_keys = [keys_of(kind.name, target) for kind, target in wanted]

    def calls() -> list[Call]:
        return [
            Call(
                READ,
                (keys.meta, keys.outbox, keys.recent, keys.bloom, keys.filling),
                (run_id_of(keys), actor, ttl_ms),
            )
            for keys in all_keys
        ]

    return [
        a and CachedCount(a[0], None if a[1] == "" else a[1] == "1", a[2] == 1)
        for a in _run_reads(all_keys, calls)
    ]


def read_page(
    kind: Kind, target: Target, after: Reactor | None, latest: bool, count: int
) -> tuple[bool, list[Reactor]] | None:
    """(the page is whole by itself, the page from ``after`` on), or None when the target is away.

    It is whole when Redis has everybody, and when it has the earliest and those are asked for. Else
    it is the part that is in recent. The page holds ``count`` or more if there are so many, those
    equal to ``after`` included; of the earliest not more than were kept. Raises RedisDown.
    """
    keys = keys_of(kind.name, target)
    begin = after.version_us if after else ("+inf" if latest else "-inf")
    order = "desc" if latest else "asc"

    def calls() -> list[Call]:
        args = (run_id_of(keys), begin, order, count)
        return [Call(PAGE, (keys.meta, keys.recent, keys.earliest), args)]

    [answer] = _run_reads([keys], calls)
    if not answer:
        return None
    pairs = iter(answer[1:])
    return answer[0] > 0, [
        Reactor(int(actor), int(float(version)))
        for actor, version in zip(pairs, pairs, strict=True)
    ]


def cache_earliest(
    kind: Kind, target: Target, db_version: int, earliest: Sequence[Reactor]
) -> bool:
    """Keep the first page of the earliest actors, as MySQL had it at version ``db_version`` of the counter.

    There are more actors than those. False when the target is not loaded or was brought to a later
    version. One round trip. Raises RedisDown.
    """
    keys = keys_of(kind.name, target)
    args: list[Argument] = [
        run_id_of(keys),
        db_version,
        earliest[-1].version_us,
        EARLIEST_TTL_S * 1000,
    ]
    for actor_id, version_us in earliest:
        args += [version_us, actor_id]
    return bool(redis.run(CACHE_EARLIEST, (keys.meta, keys.earliest), args) == 1)


def _run_reads(all_keys: Sequence[TargetKeys], calls: Callable[[], list[Call]]) -> list[Any]:
    """The answers of ``calls``; once more when a node turned out to have restarted meanwhile."""
    answers: list[Any] = []
    for _ in range(_MAX_ATTEMPTS):
        before = [run_id_of(keys) for keys in all_keys]
        answers = redis.run_all(calls())
        if before == [run_id_of(keys) for keys in all_keys]:
            return answers
    raise RedisDown("Redis restarts again and again")

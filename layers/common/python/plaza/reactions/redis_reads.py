"""Totals, states and pages of actors, as Redis has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from plaza.infra import redis
from plaza.infra.hot_keys import Argument
from plaza.infra.lua import load_script
from plaza.infra.redis import Call, RedisDown
from plaza.reactions.reactions import Kind, Reactor, Target
from plaza.reactions.redis_keys import Keys, idle_ttl_ms, keys_of, run_id_of

EARLIEST_TTL_S = 3_600
_MAX_TRIES = 3

_LUA = Path(__file__).with_name("lua")
READ = load_script(_LUA / "read.lua")
PAGE = load_script(_LUA / "page.lua")
KEEP_EARLIEST = load_script(_LUA / "keep_earliest.lua")


class Seen(NamedTuple):
    """What Redis knows of a target: its total, and if the calling actor is on (None: ask MySQL)."""

    total: int
    mine: bool | None
    rebuild: bool


def read_all(wanted: Sequence[tuple[Kind, Target]], actor_id: int | None) -> list[Seen | None]:
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
        a and Seen(a[0], None if a[1] == "" else a[1] == "1", a[2] == 1)
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
    begin = after.ver_us if after else ("+inf" if latest else "-inf")
    order = "desc" if latest else "asc"

    def calls() -> list[Call]:
        args = (run_id_of(keys), begin, order, count)
        return [Call(PAGE, (keys.meta, keys.recent, keys.earliest), args)]

    [answer] = _run_reads([keys], calls)
    if not answer:
        return None
    pairs = iter(answer[1:])
    return answer[0] > 0, [
        Reactor(int(actor), int(float(ver))) for actor, ver in zip(pairs, pairs, strict=True)
    ]


def keep_earliest(kind: Kind, target: Target, n: int, earliest: Sequence[Reactor]) -> bool:
    """Keep the first page of the earliest actors, as MySQL had it at version ``n`` of the counter.

    There are more actors than those. False when the target is not loaded or was brought to a later
    version. One round trip. Raises RedisDown.
    """
    keys = keys_of(kind.name, target)
    args: list[Argument] = [run_id_of(keys), n, earliest[-1].ver_us, EARLIEST_TTL_S * 1000]
    for actor_id, ver_us in earliest:
        args += [ver_us, actor_id]
    return bool(redis.run(KEEP_EARLIEST, (keys.meta, keys.earliest), args) == 1)


def _run_reads(all_keys: Sequence[Keys], calls: Callable[[], list[Call]]) -> list[Any]:
    """The answers of ``calls``; once more when a node turned out to have restarted meanwhile."""
    answers: list[Any] = []
    for _ in range(_MAX_TRIES):
        before = [run_id_of(keys) for keys in all_keys]
        answers = redis.run_all(calls())
        if before == [run_id_of(keys) for keys in all_keys]:
            return answers
    raise RedisDown("Redis restarts again and again")

"""The state of targets in Redis, for comparison with MySQL. Each read costs one round trip and
raises RedisDown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from plaza.core.reactions.kinds import KINDS, Kind
from plaza.core.reactions.model import (
    MAX_ID,
    MAX_VERSION_US,
    CachedTarget,
    Fingerprint,
    Target,
    Unreadable,
)
from plaza.core.reactions.redis_keys import keys_of, term_of
from plaza.infra.redis import redis
from plaza.infra.redis.commands import Call
from plaza.infra.redis.scripts import load_script

_LUA = Path(__file__).with_name("lua")
INSPECT_TARGET = load_script(_LUA / "inspect_target.lua")
FIND_DENIED = load_script(_LUA / "find_denied.lua")
_KEY = re.compile(r"\{\d+\}:([a-z]+):([a-z]+):([1-9]\d{0,18}):(meta|earliest)", re.ASCII)


def target_of_key(key: str) -> tuple[Kind, Target] | None:
    """Return the target of a meta key, None for any other key."""
    return _parse_key(key, "meta")


def target_of_earliest(key: str) -> tuple[Kind, Target] | None:
    """Return the target of a page of the earliest actors, None for any other key."""
    return _parse_key(key, "earliest")


def _parse_key(key: str, name: str) -> tuple[Kind, Target] | None:
    match = _KEY.fullmatch(key)
    if match is None or match[1] not in KINDS or match[4] != name:
        return None
    kind, target = KINDS[match[1]], Target(match[2], int(match[3]))
    is_valid = target.type in kind.targets and target.id <= MAX_ID
    return (kind, target) if is_valid and getattr(keys_of(kind.name, target), name) == key else None


def inspect_all(
    pairs: Sequence[tuple[Kind, Target]], max_actors: int
) -> list[CachedTarget | Unreadable | None]:
    """Return the state of each of ``pairs``, None for a target that is not loaded."""
    calls = []
    for kind, target in pairs:
        keys = keys_of(kind.name, target)
        calls.append(
            Call(INSPECT_TARGET, (keys.meta, keys.outbox, keys.recent), (term_of(keys), max_actors))
        )
    return [reply and _parse_target(reply) for reply in redis.run_all(calls)]


def _parse_target(reply: Sequence[str | int]) -> CachedTarget | Unreadable:
    db_version, base, delta, outbox_count, entries, complete, bloom, floor, blocked, *newest = reply
    try:
        floor_us = int(floor)
        cached = CachedTarget(
            int(base),
            int(db_version),
            int(delta),
            int(outbox_count),
            int(entries),
            complete == "1",
            int(bloom),
            None if floor_us < 0 else floor_us,
            blocked != "",
            Fingerprint(*map(int, newest)),
        )
    except ValueError:
        return Unreadable(
            f"base {base!s:.20} db_version {db_version!s:.20}"
            f" delta {delta!s:.20} outbox_count {outbox_count!s:.20}"
        )
    if 0 <= cached.db_version <= MAX_VERSION_US:
        return cached
    return Unreadable(f"db_version {db_version!s:.20}")


def find_denied(
    requests: Sequence[tuple[Kind, Target, Sequence[int]]],
) -> list[tuple[int, list[int]]]:
    """Return (db_version, the actors that recent and the filter report as off) of each of
    ``requests``, (0, []) without a filter. The outbox is ignored."""
    calls = []
    for kind, target, actor_ids in requests:
        keys = keys_of(kind.name, target)
        of_target = (keys.meta, keys.recent, keys.bloom)
        calls.append(Call(FIND_DENIED, of_target, (term_of(keys), *actor_ids)))
    return [
        (int(reply[0]), [int(actor) for actor in reply[1:]]) if reply else (0, [])
        for reply in redis.run_all(calls)
    ]


def read_recent(targets: Sequence[tuple[Kind, Target]], max_actors: int) -> list[dict[str, int]]:
    """Return actor -> version_us of the ``max_actors`` newest actors of each of ``targets``."""
    recent = []
    for members in redis.pipeline(
        [
            ("ZRANGE", keys_of(kind.name, target).recent, 0, max_actors - 1, "REV", "WITHSCORES")
            for kind, target in targets
        ]
    ):
        pairs = iter(members)
        recent.append({a: int(float(version)) for a, version in zip(pairs, pairs, strict=True)})
    return recent


def read_earliest_pages(pairs: Sequence[tuple[Kind, Target]]) -> list[dict[str, int]]:
    """Return actor -> version of the cached page of the earliest actors of each of ``pairs``, empty
    if no reader uses one."""
    keys = [keys_of(kind.name, target) for kind, target in pairs]
    replies = iter(
        redis.pipeline(
            [
                command
                for of_target in keys
                for command in (
                    ("HGET", of_target.meta, "earliest"),
                    ("ZRANGE", of_target.earliest, 0, -1, "WITHSCORES"),
                )
            ]
        )
    )
    pages = []
    for last, entries in zip(replies, replies, strict=True):
        parts = iter(entries if last else ())
        pages.append({str(actor): int(float(at)) for actor, at in zip(parts, parts, strict=True)})
    return pages


def drop_earliest(pairs: Iterable[tuple[Kind, Target]]) -> None:
    """Drop cached pages of the earliest actors."""
    keys = [keys_of(kind.name, target) for kind, target in pairs]
    redis.pipeline(
        [
            command
            for of_target in keys
            for command in (
                ("HDEL", of_target.meta, "earliest"),
                ("UNLINK", of_target.earliest),
            )
        ]
    )

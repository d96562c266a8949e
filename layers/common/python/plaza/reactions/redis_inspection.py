"""What Redis holds of targets, for those who compare it with MySQL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from plaza.infra import redis
from plaza.infra.lua import load_script
from plaza.infra.redis import Call
from plaza.reactions.model import (
    KINDS,
    MAX_ID,
    MAX_VERSION_US,
    CachedTarget,
    Fingerprint,
    Kind,
    Target,
    Unreadable,
)
from plaza.reactions.redis_keys import keys_of, run_id_of

_LUA = Path(__file__).with_name("lua")
INSPECT_TARGET = load_script(_LUA / "inspect_target.lua")
FIND_DENIED = load_script(_LUA / "find_denied.lua")
_META_KEY = re.compile(r"\{\d+\}:([a-z]+):([a-z]+):([1-9]\d{0,18}):meta", re.ASCII)


def target_of_key(key: str) -> tuple[Kind, Target] | None:
    """The target whose meta ``key`` is, None for any other key."""
    found = _META_KEY.fullmatch(key)
    if found is None or found[1] not in KINDS:
        return None
    kind, target = KINDS[found[1]], Target(found[2], int(found[3]))
    ours = target.type in kind.targets and target.id <= MAX_ID
    return (kind, target) if ours and keys_of(kind.name, target).meta == key else None


def inspect_all(
    wanted: Sequence[tuple[Kind, Target]], max_actors: int
) -> list[CachedTarget | Unreadable | None]:
    """What Redis holds of each of ``wanted``, with its ``max_actors`` newest actors; None: not loaded.

    Nothing lives longer for it. One round trip. Raises RedisDown.
    """
    calls = []
    for kind, target in wanted:
        keys = keys_of(kind.name, target)
        calls.append(
            Call(
                INSPECT_TARGET, (keys.meta, keys.outbox, keys.recent), (run_id_of(keys), max_actors)
            )
        )
    return [answer and _read_held(answer) for answer in redis.run_all(calls)]


def _read_held(answer: Sequence[str | int]) -> CachedTarget | Unreadable:
    s, base, delta, outbox_count, entries, complete, bloom, floor, blocked, *newest = answer
    try:
        floor_us = int(floor)
        held = CachedTarget(
            int(base),
            int(s),
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
            f"base {base!s:.20} s {s!s:.20} delta {delta!s:.20} outbox_count {outbox_count!s:.20}"
        )
    return held if 0 <= held.db_version <= MAX_VERSION_US else Unreadable(f"s {s!s:.20}")


def find_denied(
    wanted: Sequence[tuple[Kind, Target, Sequence[int]]],
) -> list[tuple[int, list[int]]]:
    """Of each page of actors, those that are off by recent and the filter, and the s of the target.

    The outbox does not count. One round trip. Raises RedisDown.
    """
    calls = []
    for kind, target, actor_ids in wanted:
        keys = keys_of(kind.name, target)
        of_target = (keys.meta, keys.recent, keys.bloom)
        calls.append(Call(FIND_DENIED, of_target, (run_id_of(keys), *actor_ids)))
    return [
        (int(answer[0]), [int(actor) for actor in answer[1:]]) if answer else (0, [])
        for answer in redis.run_all(calls)
    ]


def read_recent(wanted: Sequence[tuple[Kind, Target]], max_actors: int) -> list[dict[str, int]]:
    """actor -> version_us of the ``max_actors`` newest of each. One round trip. Raises RedisDown."""
    found = []
    for answer in redis.pipeline(
        [
            ("ZRANGE", keys_of(kind.name, target).recent, 0, max_actors - 1, "REV", "WITHSCORES")
            for kind, target in wanted
        ]
    ):
        pairs = iter(answer)
        found.append({a: int(float(version)) for a, version in zip(pairs, pairs, strict=True)})
    return found

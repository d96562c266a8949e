"""Projections: what MySQL has, stored in Redis as an absolute value with its version.

Applied only if newer, so duplicates and late ones do no harm. Readers create them, writers update
those that are there: a writer that finds none leaves its version as a fence, so that a reader who
read before it can't bring the older value in.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from plaza.infra import redis
from plaza.infra.lua import load_script
from plaza.infra.redis import Call, RedisDown
from plaza.infra.shards import group_by_tag, shard_of

T = TypeVar("T")

TTL_S = 3600
FENCE_TTL_S = 60
_MAX_KEYS = 250  # of one run of a script
_LONG_VALUE = 1_000  # characters of a value that has a run of its own
_SCRIPTS = Path(__file__).with_name("scripts")
_PROJECT = load_script(_SCRIPTS / "project.lua")
_DROP = load_script(_SCRIPTS / "drop.lua")


class Projection(NamedTuple):
    """The ``value`` that MySQL has under ``key`` at version ``version``, stored for about ``ttl_s``."""

    key: str
    version: int
    value: str
    ttl_s: int = TTL_S


def key_of(target: str, what: str) -> str:
    """The key of ``what`` is projected of ``target`` (``<type>:<id>``), in the target's shard."""
    return f"{{{shard_of(target)}}}:{target}:{what}"


def read_all(keys: Sequence[str]) -> list[tuple[int, str] | None]:
    """(version, value) under each of ``keys``, None where none is. One round trip. Raises RedisDown."""
    answers = redis.pipeline([("HMGET", key, "version", "value") for key in keys])
    return [None if value is None else (int(version), value) for version, value in answers]


def store_all(projections: Sequence[Projection], *, create: bool) -> list[bool]:
    """Keep each unless Redis has a newer one; ``create`` also where none is. One round trip.

    Whether each was stored. Raises RedisDown.
    """
    is_long = any(len(projection.value) > _LONG_VALUE for projection in projections)
    keys = [projection.key for projection in projections]
    groups = group_by_tag(keys, 1 if is_long else _MAX_KEYS)
    calls = [_call([projections[i] for i in group], create) for group in groups]
    stored = [False] * len(projections)
    for group, answer in zip(groups, redis.run_all(calls), strict=True):
        for i, code in zip(group, answer, strict=True):
            stored[i] = code == 1
    return stored


def drop_all(versions: Mapping[str, int]) -> None:
    """Let go of the values of keys that are older than a version, which stays as a fence.

    One round trip. Raises RedisDown.
    """
    redis.run_all(
        [Call(_DROP, (key,), (version, FENCE_TTL_S)) for key, version in versions.items()]
    )


def read_through(
    ids: Sequence[int],
    read_redis: Callable[[Sequence[int]], dict[int, T]],
    read_mysql: Callable[[Sequence[int]], dict[int, T]],
    store: Callable[..., None],
) -> dict[int, T]:
    """What Redis has of ``ids``, and MySQL of the others, which Redis has from then on."""
    try:
        found = read_redis(ids)
    except RedisDown:
        return read_mysql(ids)
    if missing := [i for i in ids if i not in found]:
        fresh = read_mysql(missing)
        with suppress(RedisDown):
            store(fresh, create=True)
        found |= fresh
    return found


def _call(projections: Sequence[Projection], create: bool) -> Call:
    """One run of the script for projections of one shard."""
    args: list[str | int] = []
    for _, version, value, ttl_s in projections:
        args += [version, value, int(ttl_s * random.uniform(0.9, 1.1))]  # not all expire together
    return Call(_PROJECT, [p.key for p in projections], (int(create), FENCE_TTL_S, *args))

"""Projections: values of MySQL, stored in Redis as absolute values with their versions.

Redis stores a projection only if it is newer, so duplicates and late ones do no harm. Readers
create projections, writers update existing ones: a writer that finds none leaves its version as a
fence, so that a reader that read MySQL before cannot store the older value. Where writers update
the projections of announced readers only, a reader leaves the fence, and stores its value only if
that fence still is there: if it was lost, a writer may have passed without finding the reader.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar

from plaza.infra.redis import redis, replicas
from plaza.infra.redis.commands import Call, Command, RunAll
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.scripts import SHARED, load_script
from plaza.infra.redis.shards import group_by_tag, shard_of
from plaza.infra.runtime.codec import Codec

T = TypeVar("T")
U = TypeVar("U")

TTL_S = 3600
FENCE_TTL_S = 60
_MAX_KEYS = 250  # keys of one run of a script
_LONG_VALUE = 1_000  # characters; longer values have a run of their own
_PROJECT = load_script(SHARED / "project.lua")
_DROP = load_script(SHARED / "drop.lua")
STORE_READ = load_script(SHARED / "store_read.lua")


class Projection(NamedTuple):
    """A ``value`` of MySQL and its ``version``, stored under ``key`` for ``ttl_s`` +- 10 %."""

    key: str
    version: int
    value: str
    ttl_s: int = TTL_S


@lru_cache(maxsize=8192)
def key_of(target: str, what: str) -> str:
    """Return the key of the projection ``what`` of ``target`` (``<type>:<id>``), in its shard."""
    return f"{{{shard_of(target)}}}:{target}:{what}"


def read_all(
    keys: Sequence[str], codec: Codec[T], source: RunAll = redis.run_all
) -> list[tuple[int, T] | None]:
    """Return (version, value) of each key, None for a miss: no value, or one that this version
    cannot decode. One round trip; one more for keys that a replica lacks. Raises RedisDown."""
    return _read(keys, [codec] * len(keys), source)


def read_pair(
    first: tuple[str, Codec[T]], second: tuple[str, Codec[U]], source: RunAll = redis.run_all
) -> tuple[tuple[int, T] | None, tuple[int, U] | None]:
    """Return (version, value) of two keys with a codec each; otherwise as ``read_all``."""
    values = _read([first[0], second[0]], [first[1], second[1]], source)
    return values[0], values[1]


def read_command(key: str) -> Command:
    """Return the command that reads the projection of ``key``, for ``parse_reply``."""
    return "HMGET", key, "version", "value"


def parse_reply(reply: Any, codec: Codec[T]) -> tuple[int, T] | None:
    """Return (version, value) in the reply to ``read_command``, None for a miss."""
    version, text = reply
    value = codec.read(text)
    return None if value is None else (int(version), value)


def store_all(projections: Sequence[Projection], *, create: bool) -> list[bool]:
    """Store each projection unless Redis has a newer one; return whether each was stored.

    Without ``create`` a key that has no value gets a fence only. One round trip. Raises RedisDown.
    """
    is_long = any(len(projection.value) > _LONG_VALUE for projection in projections)
    keys = [projection.key for projection in projections]
    groups = group_by_tag(keys, 1 if is_long else _MAX_KEYS)
    calls = [_call([projections[i] for i in group], create) for group in groups]
    stored = [False] * len(projections)
    for group, reply in zip(groups, redis.run_all(calls), strict=True):
        for i, code in zip(group, reply, strict=True):
            stored[i] = code == 1
    return stored


def announce_reads(keys: Sequence[str]) -> list[str]:
    """Leave a fence of version 0 where a key has none, and return the fence of each key, for
    ``store_read``. One round trip. Raises RedisDown."""
    fence = secrets.token_hex(6)
    replies = redis.pipeline(
        [
            command
            for key in keys
            for command in (
                ("HSETNX", key, "fence", fence),
                ("HSETNX", key, "version", 0),
                ("HGET", key, "fence"),
                ("EXPIRE", key, FENCE_TTL_S, "NX"),
                ("EXPIRE", key, FENCE_TTL_S, "GT"),
            )
        ]
    )
    return [str(token) for token in replies[2::5]]


def store_read(projections: Sequence[Projection], fences: Sequence[str]) -> None:
    """Store each projection where its fence still is, unless Redis has a newer one. One round trip.
    Raises RedisDown."""
    calls = []
    for group in group_by_tag([projection.key for projection in projections], _MAX_KEYS):
        args = [arg for i in group for arg in (fences[i], *_render(projections[i]))]
        calls.append(Call(STORE_READ, [projections[i].key for i in group], args))
    redis.run_all(calls)


def drop_all(versions: Mapping[str, int]) -> None:
    """Drop the values older than the version of their key, which stays as a fence for 60 s.
    One round trip. Raises RedisDown."""
    redis.run_all(
        [Call(_DROP, (key,), (version, FENCE_TTL_S)) for key, version in versions.items()]
    )


def read_through(
    ids: Sequence[int],
    read_redis: Callable[[Sequence[int]], dict[int, T]],
    read_mysql: Callable[[Sequence[int]], dict[int, T]],
    store: Callable[..., None],
    announce: Callable[[Sequence[int]], Any] | None = None,
) -> dict[int, T]:
    """Return id -> value from Redis, and from MySQL for the others, which are stored in Redis.

    ``announce`` is called before ``read_mysql`` where writers look for readers instead of leaving
    fences; ``store`` gets its result. Up to two round trips and one ``read_mysql``, and one round
    trip for ``announce``. Raises what ``read_mysql`` raises.
    """
    try:
        values = read_redis(ids)
    except RedisDown:
        return read_mysql(ids)
    if missing := [i for i in ids if i not in values]:
        if announce:
            try:
                store = partial(store, announced=announce(missing))
            except RedisDown:
                return values | read_mysql(missing)
        else:
            store = partial(store, create=True)
        fresh = read_mysql(missing)
        with suppress(RedisDown):
            store(fresh)
        values |= fresh
    return values


def _read(keys: Sequence[str], codecs: Sequence[Codec[Any]], source: RunAll) -> list[Any]:
    replies = source((), [read_command(key) for key in keys])
    values = list(map(parse_reply, replies, codecs))
    if source is replicas.run_all and None in values:
        return _read(keys, codecs, redis.run_all)
    return values


def _call(projections: Sequence[Projection], create: bool) -> Call:
    args = [arg for projection in projections for arg in _render(projection)]
    return Call(_PROJECT, [p.key for p in projections], (int(create), FENCE_TTL_S, *args))


def _render(projection: Projection) -> tuple[int, str, int]:
    """Return the arguments of a projection; the TTL spreads the expiry."""
    _, version, value, ttl_s = projection
    return version, value, int(ttl_s * random.uniform(0.9, 1.1))

"""Projections of blocks in Redis (``plaza.infra.derived.projections``). Each call is one round
trip.

{<shard>}:user:<id>:blocks  hash  version, value: the users that the user blocks, JSON
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from plaza.infra.derived import projections
from plaza.infra.derived.projections import Projection, key_of
from plaza.infra.redis import redis
from plaza.infra.runtime.codec import Codec, json_codec

BLOCKED: Codec[list[int]] = json_codec("blocks", list[int])


def blocks_key(user_id: int) -> str:
    return key_of(f"user:{user_id}", "blocks")


def read_blocked(user_ids: Sequence[int]) -> dict[int, tuple[frozenset[int], int]]:
    """Return user -> (the users that it blocks, version) of users in Redis. Raises RedisDown."""
    cached = projections.read_all([blocks_key(user_id) for user_id in user_ids], BLOCKED)
    return {
        user_id: (frozenset(entry[1]), entry[0])
        for user_id, entry in zip(user_ids, cached, strict=True)
        if entry is not None
    }


def store_blocked(blocked: Mapping[int, tuple[frozenset[int], int]], *, create: bool) -> None:
    """Project (the users that a user blocks, version). Raises RedisDown."""
    projections.store_all(
        [
            Projection(blocks_key(user_id), version, BLOCKED.encode(sorted(ids)))
            for user_id, (ids, version) in blocked.items()
        ],
        create=create,
    )


def drop_blocked(user_ids: Iterable[int], version: int) -> None:
    """Drop the projections of users that are older than ``version``. Raises RedisDown."""
    projections.drop_all({blocks_key(user_id): version for user_id in user_ids})


def delete(user_id: int) -> None:
    """Delete the projection of an erased user. Raises RedisDown."""
    redis.execute("UNLINK", blocks_key(user_id))

"""Projections of bells in Redis (``plaza.infra.derived.projections``). Unless stated otherwise, a
function costs one round trip and raises RedisDown.

{<shard>}:user:<id>:bell  hash  version, value: unread; fence: name of the fence that readers left
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from plaza.bell.model import UNREAD, BellState
from plaza.infra.derived import projections
from plaza.infra.derived.projections import Projection, key_of
from plaza.infra.redis import redis


def bell_key(user_id: int) -> str:
    return key_of(f"user:{user_id}", "bell")


def read_bells(user_ids: Sequence[int]) -> dict[int, BellState]:
    """Return the bells that are in Redis."""
    cached = projections.read_all([bell_key(user_id) for user_id in user_ids], UNREAD)
    return {
        user_id: BellState(*projected)
        for user_id, projected in zip(user_ids, cached, strict=True)
        if projected is not None
    }


def project_bells(states: Mapping[int, BellState]) -> None:
    """Store newer bells of users that Redis has bells of."""
    projections.store_all(_projections_of(states), create=False)


def announce_reads(user_ids: Sequence[int]) -> dict[int, str]:
    """Leave a fence for users without a bell, before it is read from MySQL; return the fences."""
    fences = projections.announce_reads([bell_key(user_id) for user_id in user_ids])
    return dict(zip(user_ids, fences, strict=True))


def store_read_bells(states: Mapping[int, BellState], announced: Mapping[int, str]) -> None:
    """Store newer bells where the fence of ``announce_reads`` still is."""
    projections.store_read(_projections_of(states), [announced[user_id] for user_id in states])


def drop_bells(user_ids: Iterable[int]) -> None:
    """Delete the projections of users."""
    redis.pipeline(redis.delete_commands(bell_key(user_id) for user_id in user_ids))


def _projections_of(states: Mapping[int, BellState]) -> list[Projection]:
    return [
        Projection(bell_key(user_id), version, UNREAD.encode(unread))
        for user_id, (version, unread) in states.items()
    ]

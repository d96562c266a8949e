"""Projections of unread counters in Redis (``plaza.infra.derived.projections``). Unless stated
otherwise, a function costs one round trip and raises RedisDown.

{<shard>}:user:<id>:unread  hash  version, value: unread; fence: name of the fence that readers left
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from plaza.infra.derived import projections
from plaza.infra.derived.projections import Projection, key_of
from plaza.infra.redis import redis
from plaza.notifications.notifications.model import UNREAD, UnreadState


def unread_key(user_id: int) -> str:
    return key_of(f"user:{user_id}", "unread")


def read_all(user_ids: Sequence[int]) -> dict[int, UnreadState]:
    """Return the unread counters that are in Redis."""
    cached = projections.read_all([unread_key(user_id) for user_id in user_ids], UNREAD)
    return {
        user_id: UnreadState(*projected)
        for user_id, projected in zip(user_ids, cached, strict=True)
        if projected is not None
    }


def project_all(states: Mapping[int, UnreadState]) -> None:
    """Store newer unread counters of users that Redis has unread counters of."""
    projections.store_all(_projections_of(states), create=False)


def announce_reads(user_ids: Sequence[int]) -> dict[int, str]:
    """Leave a fence for users without an unread counter, before it is read from MySQL; return the
    fences."""
    fences = projections.announce_reads([unread_key(user_id) for user_id in user_ids])
    return dict(zip(user_ids, fences, strict=True))


def store_read(states: Mapping[int, UnreadState], announced: Mapping[int, str]) -> None:
    """Store newer unread counters where the fence of ``announce_reads`` still is."""
    projections.store_read(_projections_of(states), [announced[user_id] for user_id in states])


def drop_unread(user_ids: Iterable[int]) -> None:
    """Delete the projections of users."""
    redis.pipeline(redis.delete_commands(unread_key(user_id) for user_id in user_ids))


def _projections_of(states: Mapping[int, UnreadState]) -> list[Projection]:
    return [
        Projection(unread_key(user_id), version, UNREAD.encode(unread))
        for user_id, (version, unread) in states.items()
    ]

"""Projections of users in Redis (``plaza.infra.projections``). Each call is one round trip.

{<shard>}:user:<id>:card  hash  version, value: nickname and avatar, JSON
{<shard>}:user:<id>:zone  hash  version, value: time zone, a space, latest day
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from plaza import counters
from plaza.counters import UserCounter
from plaza.infra import projections, redis
from plaza.infra.projections import Projection, key_of
from plaza.infra.redis import RunAll
from plaza.users.model import Card
from plaza.users.zones import Zone


def card_key(user_id: int) -> str:
    return key_of(f"user:{user_id}", "card")


def read_cards(
    user_ids: Iterable[int], source: RunAll = redis.run_all
) -> dict[int, tuple[Card, int]]:
    """Return id -> (card, version) of users in ``source``. Raises RedisDown."""
    ids = list(user_ids)
    found = projections.read_all([card_key(user_id) for user_id in ids], source)
    return {
        user_id: (_parse_card(user_id, entry[1]), entry[0])
        for user_id, entry in zip(ids, found, strict=True)
        if entry is not None
    }


@lru_cache(maxsize=2_000)
def _parse_card(user_id: int, value: str) -> Card:
    return Card.from_json(user_id, value)


def zone_key(user_id: int) -> str:
    return key_of(f"user:{user_id}", "zone")


def read_zones(user_ids: Sequence[int]) -> dict[int, tuple[Zone, int]]:
    """Return id -> (time zone, version) of users in Redis. Raises RedisDown."""
    found = projections.read_all([zone_key(user_id) for user_id in user_ids])
    return {
        user_id: (Zone.from_text(entry[1]), entry[0])
        for user_id, entry in zip(user_ids, found, strict=True)
        if entry is not None
    }


def store_zones(zones: Mapping[int, tuple[Zone, int]], *, create: bool) -> None:
    """Project (time zone, version) of users. Raises RedisDown."""
    projections.store_all(
        [Projection(zone_key(i), version, zone.to_text()) for i, (zone, version) in zones.items()],
        create=create,
    )


def read_profile(
    user_id: int, source: RunAll = redis.run_all
) -> tuple[Card | None, UserCounter | None]:
    """Return (card, totals), None for what ``source`` lacks. Raises RedisDown."""
    card, totals = projections.read_all([card_key(user_id), counters.user_key(user_id)], source)
    return (
        Card.from_json(user_id, card[1]) if card else None,
        UserCounter.from_json(totals[1]) if totals else None,
    )


def store_cards(cards: Mapping[int, tuple[Card, int]], *, create: bool) -> None:
    """Project (card, version) of users. Raises RedisDown."""
    projections.store_all(
        [
            Projection(card_key(user_id), version, card.to_json())
            for user_id, (card, version) in cards.items()
        ],
        create=create,
    )


def drop(user_id: int) -> None:
    """Delete the projections of a user. Raises RedisDown."""
    redis.pipeline(redis.delete_commands([card_key(user_id), zone_key(user_id)]))

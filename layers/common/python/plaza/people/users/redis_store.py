"""Projections of users in Redis (``plaza.infra.derived.projections``). Each call is one round trip.

{<shard>}:user:<id>:card  hash  version, value: nickname and avatar, JSON
{<shard>}:user:<id>:zone  hash  version, value: time zone, latest day, first and last excused
                                         day, with spaces; empty or left out for none
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import lru_cache

from plaza.core import counters
from plaza.core.counters import UserCounter
from plaza.infra.derived import projections
from plaza.infra.derived.projections import Projection, key_of
from plaza.infra.redis import redis
from plaza.infra.redis.commands import RunAll
from plaza.infra.runtime.codec import TEXT, Codec, Struct, json_codec
from plaza.people.users.model import Card
from plaza.people.users.zones import Zone


class CardValue(Struct, frozen=True, array_like=True, gc=False):
    """A card without its id. A new field comes last, with a default."""

    nickname: str
    avatar: str | None


def _decode_zone(text: str) -> Zone:
    name, latest_day, *excused = text.split(" ")
    return Zone(
        name,
        date.fromisoformat(latest_day) if latest_day else None,
        (date.fromisoformat(excused[0]), date.fromisoformat(excused[1])) if excused[1:] else None,
    )


def _encode_zone(zone: Zone) -> str:
    days = [zone.latest_day or "", *(zone.excused or ())]
    return " ".join([zone.name, *map(str, days)])


CARD: Codec[CardValue] = json_codec("cards", CardValue)
ZONE = Codec("zones", _encode_zone, _decode_zone)


def card_key(user_id: int) -> str:
    return key_of(f"user:{user_id}", "card")


def read_cards(
    user_ids: Iterable[int], source: RunAll = redis.run_all
) -> dict[int, tuple[Card, int]]:
    """Return id -> (card, version) of users in ``source``. Raises RedisDown."""
    ids = list(user_ids)
    cached = projections.read_all([card_key(user_id) for user_id in ids], TEXT, source)
    return {
        user_id: (card, entry[0])
        for user_id, entry in zip(ids, cached, strict=True)
        if entry is not None and (card := _read_card(user_id, entry[1])) is not None
    }


@lru_cache(maxsize=2_000)
def _read_card(user_id: int, text: str) -> Card | None:
    """Return the card in a stored text, None for a miss."""
    value = CARD.read(text)
    return None if value is None else Card(user_id, value.nickname, value.avatar)


def zone_key(user_id: int) -> str:
    return key_of(f"user:{user_id}", "zone")


def read_zones(user_ids: Sequence[int]) -> dict[int, tuple[Zone, int]]:
    """Return id -> (time zone, version) of users in Redis. Raises RedisDown."""
    cached = projections.read_all([zone_key(user_id) for user_id in user_ids], ZONE)
    return {
        user_id: (entry[1], entry[0])
        for user_id, entry in zip(user_ids, cached, strict=True)
        if entry is not None
    }


def store_zones(zones: Mapping[int, tuple[Zone, int]], *, create: bool) -> None:
    """Project (time zone, version) of users. Raises RedisDown."""
    projections.store_all(
        [
            Projection(zone_key(i), version, ZONE.encode(zone))
            for i, (zone, version) in zones.items()
        ],
        create=create,
    )


def read_profile(
    user_id: int, source: RunAll = redis.run_all
) -> tuple[Card | None, UserCounter | None]:
    """Return (card, totals), None for what ``source`` lacks. Raises RedisDown."""
    card, totals = projections.read_pair(
        (card_key(user_id), TEXT), (counters.user_key(user_id), counters.USER_COUNTER), source
    )
    return _read_card(user_id, card[1]) if card else None, totals[1] if totals else None


def store_cards(cards: Mapping[int, tuple[Card, int]], *, create: bool) -> None:
    """Project (card, version) of users. Raises RedisDown."""
    projections.store_all(
        [
            Projection(
                card_key(user_id), version, CARD.encode(CardValue(card.nickname, card.avatar))
            )
            for user_id, (card, version) in cards.items()
        ],
        create=create,
    )


def drop(user_id: int) -> None:
    """Delete the projections of a user. Raises RedisDown."""
    redis.pipeline(redis.delete_commands([card_key(user_id), zone_key(user_id)]))

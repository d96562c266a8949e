"""Read and refresh cards and time zones: projections in Redis of rows in MySQL."""

from __future__ import annotations

from collections.abc import Iterable

from plaza.infra.derived import projections
from plaza.infra.redis import redis
from plaza.infra.redis.commands import Command, RunAll
from plaza.infra.redis.hot_reads import HotReads
from plaza.people.users import mysql_users, redis_store
from plaza.people.users.model import Card
from plaza.people.users.zones import Zone

_hot_cards: HotReads[int, Card] = HotReads(redis_store.card_key)


def read_cards(user_ids: Iterable[int], source: RunAll = redis.run_all) -> dict[int, Card]:
    """Return user id -> card, of the users that exist. Raises MysqlDown.

    One round trip to Redis if it has all; else one more, and one statement.
    """
    cards_by_id = projections.read_through(
        list(dict.fromkeys(user_ids)),
        lambda ids: redis_store.read_cards(ids, source),
        mysql_users.read_cards,
        redis_store.store_cards,
    )
    return {user_id: card for user_id, (card, _) in cards_by_id.items()}


def read_commands(user_ids: Iterable[int]) -> list[Command]:
    """Return the commands that read the cards of users, for a caller that sends others too."""
    return [projections.read_command(redis_store.card_key(user_id)) for user_id in user_ids]


def read_zone(user_id: int) -> Zone:
    """Return the time zone of a user, UTC if the user does not exist. Raises MysqlDown.

    One round trip to Redis if it has it; else one more, and one statement.
    """
    zones = projections.read_through(
        [user_id], redis_store.read_zones, mysql_users.read_zones, redis_store.store_zones
    )
    return zones[user_id][0] if user_id in zones else Zone()


def refresh_cards(user_ids: Iterable[int]) -> None:
    """Update existing projections of these users. Raises MysqlDown, RedisDown."""
    ids = list(user_ids)
    redis_store.store_cards(mysql_users.read_cards(ids), create=False)
    redis_store.store_zones(mysql_users.read_zones(ids), create=False)


def refresh_users(targets: Iterable[tuple[str, int]]) -> None:
    """Update existing projections of the users among announced ``targets``."""
    if user_ids := [target_id for target_type, target_id in targets if target_type == "user"]:
        refresh_cards(user_ids)


def read_cards_as(user_ids: Iterable[int], actor_id: int | None) -> dict[int, Card]:
    """Return the cards for a caller: as ``read_cards``; for an anonymous one, cards of hot users up
    to 2 s late."""
    if actor_id is not None:
        return read_cards(user_ids)
    return _hot_cards.read_all(user_ids, read_cards)

"""The places of single shops in Redis, as they are stored: for the reconciliation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from plaza.commerce.shops import cells
from plaza.commerce.shops.model import ShopPlace
from plaza.commerce.shops.redis_store import meta_key, moves_key, placed_key, set_key
from plaza.infra.redis import redis


class Placed(NamedTuple):
    """What Redis has of a shop. ``version``: None without one, negative if it was removed from
    MySQL. ``scores``: cell -> the scores in its sets of all shops and of the shop's type, None
    where it is not; of the cell in which it should be, and those that may have it. ``is_built``:
    whether searches use the places."""

    version: int | None
    scores: Mapping[int, tuple[int | None, int | None]]
    is_built: bool


def read_placed(places: Sequence[ShopPlace]) -> dict[int, Placed]:
    """Return shop -> what Redis has of it. Two round trips. Raises RedisDown."""
    expected = {
        shop.shop_id: None if shop.place is None else cells.cell_of(cells.fit(shop.place))
        for shop in places
    }
    records = redis.pipeline([("HGET", placed_key(shop.shop_id), shop.shop_id) for shop in places])
    commands: list[tuple[str, ...]] = []
    parsed: dict[int, tuple[int | None, list[int]]] = {}
    for shop, record in zip(places, records, strict=True):
        version, former = _parse(record)
        cell = expected[shop.shop_id]
        of_shop = sorted({*former, *([] if cell is None else [cell])})
        parsed[shop.shop_id] = version, of_shop
        for each in of_shop:
            member = str(shop.shop_id)
            commands += [
                ("HGET", meta_key(each), "built_at"),
                ("ZSCORE", set_key(each, None), member),
                ("ZSCORE", set_key(each, shop.type_id), member),
            ]
    replies = iter(redis.pipeline(commands) if commands else [])
    placed = {}
    for shop_id, (version, of_shop) in parsed.items():
        scores, is_built = {}, bool(of_shop)
        for each in of_shop:
            built_at, of_all, of_type = next(replies), next(replies), next(replies)
            is_built = is_built and built_at is not None
            scores[each] = _score(of_all), _score(of_type)
        placed[shop_id] = Placed(version, scores, is_built)
    return placed


def remove(placed: Mapping[int, Placed], type_ids: Sequence[int]) -> None:
    """Remove shops from the cells that may have them, and forget their versions and moves. One
    round trip. Raises RedisDown."""
    commands: list[tuple[str, ...]] = []
    for shop_id, stored in placed.items():
        member = str(shop_id)
        commands.append(("HDEL", placed_key(shop_id), member))
        for cell in stored.scores:
            commands.append(("HDEL", moves_key(cell), member))
            commands += [("ZREM", set_key(cell, each), member) for each in (None, *type_ids)]
    if commands:
        redis.pipeline(commands)


def _parse(record: str | None) -> tuple[int | None, list[int]]:
    """Return the version and the cells of a record of move_shops.lua."""
    version, _, rest = (record or "").partition(";")
    _, _, former = rest.partition(";")
    if not version.removeprefix("-").isdigit():
        return None, []
    return int(version), [int(cell) for cell in former.split(",") if cell.isdigit()]


def _score(reply: object) -> int | None:
    return None if reply is None else int(float(str(reply)))

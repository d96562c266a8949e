"""Telling Redis what MySQL has of shops that changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plaza.infra import cache
from plaza.infra.cache import NEVER_STALE, STALE_THEN_REBUILT, Entry
from plaza.infra.observability import record
from plaza.shops import mysql_shops, reading, redis_shops
from plaza.shops.queues import SHOPS
from plaza.shops.shops import (
    EVERYTHING,
    GONE_VER,
    MOST_SHOPS,
    Changed,
    Placed,
    Refresh,
    Step,
    Stored,
    placed_of,
)

AGAIN_S = 1


def refresh(shop_ids: Sequence[int]) -> None:
    """Tell Redis what MySQL has of these shops. Two statements and four round trips at most.

    Raises MysqlDown, RedisDown, QueueDown.
    """
    if not shop_ids:
        return
    stored = mysql_shops.read(shop_ids)
    cache.keep_all(STALE_THEN_REBUILT, reading.entries_of(stored), create=False)
    missing = [shop_id for shop_id in shop_ids if shop_id not in stored]
    none = {redis_shops.page_key(shop_id): Entry(GONE_VER, None) for shop_id in missing}
    cache.keep_all(STALE_THEN_REBUILT, none, create=True)
    tell_of(stored, missing)
    record("shops_refreshed", {"shops_refreshed": len(shop_ids)}, found=len(stored))


def adopt(changed: Sequence[Changed], types: bool) -> None:
    """Tell Redis what changed in MySQL, whoever changed it: now, and again in a second.

    Versions that didn't move are moved, so that what was read before is older from now on. Safe to
    repeat. Raises MysqlDown, RedisDown, QueueDown.
    """
    mysql_shops.bump({c.shop_id: c.after for c in changed if c.after and c.before == c.after})
    shop_ids = sorted({one.shop_id for one in changed})
    refresh(shop_ids)
    again = [shop_ids[i : i + MOST_SHOPS] for i in range(0, len(shop_ids), MOST_SHOPS)]
    if types:
        refresh_types()
        again.append([])
    for part in again:
        SHOPS.send(Refresh(part), delay_s=AGAIN_S)


def refresh_types() -> None:
    """Tell Redis which types there are. Raises MysqlDown, RedisDown."""
    entry = reading.types_entry(mysql_shops.read_types())
    cache.keep_all(NEVER_STALE, {redis_shops.TYPES_KEY: entry}, create=False)


def refresh_everything() -> None:
    """Have Redis told everything about shops: nobody knows what changed. Raises QueueDown."""
    SHOPS.send(Refresh([]))
    SHOPS.send(Step(EVERYTHING))


def tell_of(stored: Mapping[int, Stored], missing: Sequence[int] = ()) -> None:
    """Tell the filter and the places of these shops; ``missing`` were taken out of MySQL.

    One statement and two round trips. Raises MysqlDown, RedisDown, QueueDown.
    """
    if stored:
        redis_shops.SHOP_IDS.add(sorted(stored))
    placed = [placed_of(one) for one in stored.values()]
    placed += [Placed(shop_id, None, None) for shop_id in missing]
    # It is put where it is, and taken from wherever else it may have been.
    sets: dict[int | None, Sequence[Placed]] = {None: placed}
    for shop_type in mysql_shops.read_types().types:
        sets[shop_type.id] = [
            one if _is_of(stored, one.shop_id, shop_type.id) else one._replace(place=None)
            for one in placed
        ]
    again = sorted(redis_shops.put_places(sets))
    for start in range(0, len(again), MOST_SHOPS):
        # A row that was taken out may be back, and older than what was heard of it.
        part = Refresh(again[start : start + MOST_SHOPS])
        SHOPS.send(part, delay_s=redis_shops.TAKEN_OUT_S + 1)


def _is_of(stored: Mapping[int, Stored], shop_id: int, type_id: int) -> bool:
    return shop_id in stored and stored[shop_id].shop.type_id == type_id

"""Telling Redis what MySQL has of shops: of those that changed, and of all, in bounded steps."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from plaza.infra import cache
from plaza.infra.cache import NEVER_STALE, STALE_THEN_REBUILT, Entry
from plaza.infra.observability import record
from plaza.shops import mysql_shops, reading, redis_shops
from plaza.shops.queues import SHOPS
from plaza.shops.shops import (
    EVERYTHING,
    FILTER,
    GONE_VER,
    MOST_SHOPS,
    Changed,
    Placed,
    Refresh,
    Step,
    Stored,
    placed_of,
)

__all__ = [
    "AGAIN_S",
    "PAGE",
    "PAGES_PER_STEP",
    "SHOPS",
    "adopt",
    "refresh",
    "refresh_everything",
    "refresh_types",
    "tell_of",
    "work_through",
]

PAGE = 1_000
PAGES_PER_STEP = 50
AGAIN_S = 1


@SHOPS.consumer
def work_through(messages: Sequence[Refresh | Step]) -> None:
    """Refresh all shops that the messages name, and take each walk one step further.

    Safe to repeat. Raises MysqlDown, RedisDown, QueueDown.
    """
    refreshes = [message for message in messages if isinstance(message, Refresh)]
    if refreshes:
        refresh(sorted({shop_id for one in refreshes for shop_id in one.shop_ids}))
        if not all(one.shop_ids for one in refreshes):
            refresh_types()
    for message in messages:
        if isinstance(message, Step):
            _take(message)


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


def _take(step: Step) -> None:
    """A page after the other, and when it was many, the rest through the queue again."""
    begun = _begin(step)
    if begun is None:
        record("walk_refused", walk=step.walk, type_id=step.type_id)
        return
    after_id: int | None = begun.after_id
    for _ in range(PAGES_PER_STEP):
        if (after_id := _take_page(begun, after_id or 0)) is None:
            break
    else:
        SHOPS.send(begun._replace(after_id=after_id or 0))
    record("walk_stepped", walk=step.walk, type_id=step.type_id, after_id=after_id)


def _begin(step: Step) -> Step | None:
    """The step with the name of its build; None when another build is at it."""
    if step.build or step.walk == EVERYTHING:
        return step
    build = secrets.token_hex(8)
    if step.walk == FILTER:
        code = redis_shops.SHOP_IDS.begin(build, mysql_shops.count())
    else:
        code = redis_shops.begin_places(step.type_id, build)
    return step._replace(build=build) if code == "BEGUN" else None


def _take_page(step: Step, after_id: int) -> int | None:
    """The last shop of the page, None when there is nothing behind it or the build was lost."""
    if step.walk == FILTER:
        shop_ids = mysql_shops.read_ids(after_id, PAGE)
        last = len(shop_ids) < PAGE
        code = redis_shops.SHOP_IDS.fill(step.build, shop_ids, last)
        return shop_ids[-1] if code == "FILLED" else None
    if step.walk == EVERYTHING:
        shop_ids = mysql_shops.read_ids(after_id, PAGE)
        mysql_shops.bump_page(after_id, shop_ids[-1] if shop_ids else after_id)
        refresh(shop_ids)
        return shop_ids[-1] if len(shop_ids) == PAGE else None
    placed = mysql_shops.read_places(step.type_id, after_id, PAGE)
    code = redis_shops.fill_places(step.type_id, step.build, placed, len(placed) < PAGE)
    return placed[-1].shop_id if code == "FILLED" else None

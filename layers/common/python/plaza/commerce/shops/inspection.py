"""Places of shops and the filter of their ids in Redis beside MySQL, for the reconciliation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from plaza.commerce.shops import cells, mysql_shops, redis_places, redis_store, refresh
from plaza.commerce.shops.model import ShopPlace
from plaza.infra.derived.comparisons import DerivedList, IdCycle
from plaza.infra.derived.list_state import ListState
from plaza.infra.mysql.id_ranges import estimate_left


def compare(shop_ids: Sequence[int]) -> dict[int, ListState]:
    """Compare shops in Redis with MySQL, which is read before it; omit shops that MySQL does not
    have. A statement and three round trips. Raises MysqlDown, RedisDown."""
    places = mysql_shops.read_given_places(shop_ids)
    possible = set(redis_store.SHOP_IDS.find_possible([shop.shop_id for shop in places]))
    stored = redis_places.read_placed(places)
    return {
        shop.shop_id: ListState(
            f"{shop.shop_id in possible} {stored[shop.shop_id]}",
            "; ".join(
                [
                    *(["its filter denies it"] if shop.shop_id not in possible else []),
                    *_describe(shop, stored[shop.shop_id]),
                ]
            ),
        )
        for shop in places
    }


def _describe(shop: ShopPlace, stored: redis_places.Placed) -> list[str]:
    """Return what differs of a place. Places that were never built, which no search uses, and a
    shop that MySQL lacked until a minute ago are not compared."""
    if not stored.is_built or stored.version is None or stored.version < 0:
        is_missing = stored.is_built and shop.place is not None and stored.version is None
        return ["it has no place in Redis"] if is_missing else []
    expected = {}
    if shop.place is not None:
        place = cells.fit(shop.place)
        expected[cells.cell_of(place)] = cells.score_of(place)
    differences = []
    if stored.version > (shop.version or 0):
        differences.append(f"Redis @{stored.version}, MySQL @{shop.version}")
    for cell, (score, of_type) in stored.scores.items():
        if score != expected.get(cell):
            differences.append(f"cell {cell} has it at {score}, not {expected.get(cell)}")
        elif shop.type_id is not None and of_type != score:
            differences.append(f"its type has it at {of_type} in cell {cell}, not {score}")
    return differences


def repair(shop_ids: Sequence[int]) -> None:
    """Remove the places of shops, with their versions, and project the shops again. Three
    statements, and at most eight round trips. Raises MysqlDown, RedisDown, QueueDown."""
    places = mysql_shops.read_given_places(shop_ids)
    redis_places.remove(redis_places.read_placed(places), refresh.read_type_ids())
    refresh.refresh(shop_ids)


PLACES = DerivedList(
    name="shop",
    owner="shop",
    compare=compare,
    repair=repair,
    cycle=IdCycle("shops", mysql_shops.read_ids, partial(estimate_left, "shop", "id")),
)

"""Shops on queues, in Redis and in cursors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaza.commerce.shops import model
from plaza.commerce.shops.model import (
    EVERYTHING,
    FILTER,
    MAX_SHOPS_PER_MESSAGE,
    PLACES,
    Area,
    Place,
    Shop,
    ShopJobStep,
    ShopRefresh,
    StoredShop,
    place_of,
    shop_place_of,
)
from plaza.commerce.shops.queues import SHOPS
from plaza.infra.derived import cache
from plaza.infra.derived.cache import CacheDrops
from plaza.infra.queues.messages import InvalidMessage
from plaza.infra.runtime.codec import DELETED
from tests.unit.core.reactions.test_model import json_values

SHOP = Shop(
    id=5,
    name="Noodles 🍜",
    type_id=1,
    x=13.4,
    y=52.52,
    images=("https://pics.example/1.jpg",),
    created_us=1,
    updated_us=2,
)


@pytest.mark.parametrize(
    "message",
    [
        ShopRefresh([5, 6]),
        ShopRefresh([]),
        ShopJobStep(FILTER),
        ShopJobStep(PLACES),
        ShopJobStep(PLACES, "b1", 77),
        ShopJobStep(EVERYTHING, after_id=7),
    ],
)
def test_a_message_survives_encoding(message: ShopRefresh | ShopJobStep) -> None:
    assert SHOPS.decode(SHOPS.encode(message)) == message


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "{}",
        "7",
        "[" * 100_000,
        '{"shop_ids":5}',
        '{"shop_ids":["5"]}',
        '{"shop_ids":[0]}',
        '{"shop_ids":[true]}',
        '{"shop_ids":[9223372036854775808]}',
        json.dumps({"shop_ids": [1] * (MAX_SHOPS_PER_MESSAGE + 1)}),
        '{"job":"away"}',
        '{"job":["filter"]}',
        '{"job":"filter","after_id":-1,"build":"b"}',
        '{"job":"filter","build":7}',
    ],
)
def test_a_body_of_another_format_is_an_invalid_message(body: str) -> None:
    with pytest.raises(InvalidMessage):
        SHOPS.decode(body)


@pytest.mark.parametrize("job", [FILTER, PLACES])
def test_a_step_after_the_first_needs_the_name_of_its_build(job: str) -> None:
    """A filter without its first pages would deny existing shops."""
    with pytest.raises(InvalidMessage):
        SHOPS.decode(json.dumps({"job": job, "build": "", "after_id": 7}))


@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(["shop_ids", "job", "type_id", "build", "after_id"], json_values),
    )
)
def test_any_json_is_a_message_or_an_invalid_message(fields: dict[str, Any]) -> None:
    try:
        message = SHOPS.decode(json.dumps(fields))
    except InvalidMessage:
        return
    assert SHOPS.decode(SHOPS.encode(message)) == message


def test_drops_survive_encoding() -> None:
    drops = CacheDrops({"{31}:shop:5:page": 2, "{1}:shop:6:page": 2**53})
    assert cache.DROPS.decode(cache.DROPS.encode(drops)) == drops


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "7",
        "[" * 100_000,
        '{"versions":{}}',
        '{"versions":["k"]}',
        '{"versions":{"k":"1"}}',
        '{"versions":{"k":-1}}',
        '{"versions":{"k":true}}',
        '{"versions":{"k":9007199254740993}}',
    ],
)
def test_drops_without_versions_are_invalid_messages(body: str) -> None:
    with pytest.raises(InvalidMessage):
        cache.DROPS.decode(body)


def test_a_shop_survives_encoding() -> None:
    assert model.SHOP.decode(model.SHOP.encode(SHOP)) == SHOP
    assert model.SHOP.decode(model.SHOP.encode(DELETED)) is DELETED


@pytest.mark.parametrize(
    ("x", "y"), [(None, 1.0), (1.0, None), (180.1, 0.0), (0.0, 85.06), (0.0, -86.0)]
)
def test_coordinates_off_the_map_are_no_place(x: float | None, y: float | None) -> None:
    assert place_of(x, y) is None


def test_a_deleted_shop_has_no_place() -> None:
    assert shop_place_of(StoredShop(SHOP, 3, deleted=False)).place == Place(13.4, 52.52)
    assert shop_place_of(StoredShop(SHOP, 4, deleted=True)).place is None


def test_cursors_of_different_areas_have_different_signed_texts() -> None:
    areas = [
        Area(Place(x, y), radius_m, type_id)
        for x, y in ((13.4, 52.52), (1.0, 2.0), (12.0, 1.0))
        for radius_m in (1, 50)
        for type_id in (None, 1, 50)
    ]
    assert len({area.to_text() for area in areas}) == len(areas)

"""The town of the demo: deterministic, around its centre, with an open sale."""

import random
from datetime import UTC, datetime

from local.load import town

TYPES = ["1", "2", "3", "4"]


def test_town_is_the_same_each_time() -> None:
    assert town.make_shops(TYPES, random.Random(7)) == town.make_shops(TYPES, random.Random(7))


def test_every_type_has_shops_and_every_shop_a_unique_name_and_place() -> None:
    shops = town.make_shops(TYPES, random.Random(7))
    assert {shop["type_id"] for shop in shops} == set(TYPES)
    assert len({shop["name"] for shop in shops}) == len(shops) == town.SHOPS
    assert len({tuple(shop["place"].values()) for shop in shops}) == len(shops)
    assert all(abs(shop["place"]["y"] - town.BERLIN[1]) < 0.1 for shop in shops)


def test_reviews_are_of_existing_shops_and_one_a_user() -> None:
    authors = range(town.REVIEWS)
    reviews = town.make_reviews(["a", "b"], authors, random.Random(7))
    assert len({(shop, author) for shop, author, _ in reviews}) == len(reviews) == town.REVIEWS
    assert {shop for shop, _, _ in reviews} == {"a", "b"}
    assert {author for _, author, _ in reviews} <= set(authors)


def test_few_users_review_each_shop_once() -> None:
    reviews = town.make_reviews(["a", "b"], [7, 8], random.Random(7))
    assert sorted((shop, author) for shop, author, _ in reviews) == [
        ("a", 7),
        ("a", 8),
        ("b", 7),
        ("b", 8),
    ]


def test_sale_is_open_and_has_units_left_after_the_demo() -> None:
    now = datetime(2026, 11, 21, tzinfo=UTC)
    voucher = town.make_voucher("5", now.timestamp())
    opens, closes = (datetime.fromisoformat(voucher[name]) for name in ("opens_at", "closes_at"))
    assert opens < now < closes
    assert voucher["stock"] > town.BUYERS

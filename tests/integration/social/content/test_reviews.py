"""Reviews: of an order or without one, each once, and in recommended lists."""

from __future__ import annotations

from typing import Any

import pytest

from plaza.commerce.flash_sales import codes
from plaza.commerce.shops import queries as shop_queries
from plaza.core.reactions import LIKE, Target, react
from plaza.infra.mysql import mysql
from plaza.infra.runtime.clock import Deadline
from plaza.operate.accounts import export
from plaza.social.content import erasure, queries
from plaza.social.recommendations import RebuildLists, recommend
from tests.support import sales
from tests.support.content_api import REVIEW, Reply, ask
from tests.support.plaza import World
from tests.support.stores import without_tokens

SHOP, OTHER_SHOP = sales.SHOP, 6
BUYER, OTHER = 7, 8


@pytest.fixture
def shop(plaza: World) -> World:
    mysql.write("INSERT INTO shop (id, name) VALUES (5, 'Bistro'), (6, 'Bakery')")
    return plaza


def use_an_order(plaza: World, buyer: int = BUYER) -> int:
    """Return an order of a new voucher that a buyer used in shop 5."""
    order_id = order_one(plaza, buyer)
    [(voucher_id,)] = mysql.fetch_all(
        "SELECT voucher_id FROM voucher_order WHERE order_id = %s", (order_id,)
    )
    codes.redeem_code(voucher_id, codes.issue_code(order_id, buyer), sales.ADMIN)
    return order_id


def order_one(plaza: World, buyer: int = BUYER) -> int:
    voucher = sales.offer()
    path = f"/vouchers/{voucher.id}/orders"
    reply = ask("POST", path, user=buyer, folder="api/flash_sales")
    plaza.queues.drain()
    return int(reply.body["order_id"])


def review(shop_id: int = SHOP, user: int = BUYER, key: str | None = None, **fields: Any) -> Reply:
    return ask("POST", f"/shops/{shop_id}/reviews", REVIEW | fields, user=user, key=key)


def test_a_review_has_a_header_and_is_verified_by_a_used_order(shop: World) -> None:
    order_id = use_an_order(shop)
    made = review(title="Warm", order_id=str(order_id))
    assert (made.status, made.body["title"], made.body["verified"]) == (201, "Warm", True)
    plain = review()
    assert (plain.status, plain.body["title"], plain.body["verified"]) == (201, None, False)
    listed = ask("GET", f"/shops/{SHOP}/reviews").body["items"]
    assert [*map(without_tokens, listed)] == [*map(without_tokens, (plain.body, made.body))]
    assert "order_id" not in made.body, "readers do not see whose order it is"


def test_an_order_is_reviewed_once_and_a_shop_once_without_one(shop: World) -> None:
    first, second = use_an_order(shop), use_an_order(shop)
    for order_id in (str(first), str(second), None):
        assert review(order_id=order_id).status == 201
        again = review(order_id=order_id, body="Another one.")
        assert (again.status, again.slug) == (409, "already-reviewed")
    assert review(user=OTHER).status == 201
    assert review(OTHER_SHOP).status == 201


def test_a_deleted_review_can_be_replaced(shop: World) -> None:
    order_id = str(use_an_order(shop))
    for _ in range(2):
        made = review(order_id=order_id)
        assert made.status == 201
        assert ask("DELETE", f"/reviews/{made.body['id']}").status == 204
    assert mysql.fetch_all("SELECT * FROM review_slot") == []


def test_only_a_used_order_of_the_author_in_the_shop_verifies(shop: World) -> None:
    used, unused, of_other = use_an_order(shop), order_one(shop), use_an_order(shop, OTHER)
    for shop_id, order_id in (
        (SHOP, unused),
        (SHOP, of_other),
        (OTHER_SHOP, used),
        (SHOP, 99),
    ):
        reply = review(shop_id, order_id=str(order_id))
        assert (reply.status, reply.slug) == (409, "not-reviewable"), order_id
    assert mysql.fetch_all("SELECT COUNT(*) FROM content") == [(0,)]


def test_an_archived_order_that_was_redeemed_verifies(shop: World) -> None:
    order_id = use_an_order(shop)
    mysql.write(
        "INSERT INTO archived_order (buyer_id, order_id, voucher_id, digest)"
        " SELECT buyer_id, order_id, voucher_id, 'x' FROM voucher_order"
    )
    mysql.write("DELETE FROM voucher_order")
    assert review(user=OTHER, order_id=str(order_id)).slug == "not-reviewable"
    assert review(order_id=str(order_id)).body["verified"]


def test_a_repeat_with_its_key_returns_the_review(shop: World) -> None:
    made = review(key="k1")
    assert without_tokens(review(key="k1").body) == without_tokens(made.body)
    assert review(key="k2").slug == "already-reviewed"
    assert mysql.fetch_all("SELECT COUNT(*) FROM content") == [(1,)]


def test_a_review_from_before_stays_beside_a_new_one(shop: World) -> None:
    assert review().status == 201
    mysql.write("DELETE FROM review_slot")  # as reviews from before have none
    assert review().status == 201
    assert len(ask("GET", f"/shops/{SHOP}/reviews").body["items"]) == 2


def test_export_and_erasure_know_the_order_of_a_review(shop: World) -> None:
    order_id = use_an_order(shop)
    review(order_id=str(order_id))
    rows, _ = export.read_page(BUYER, None, 100)
    assert [row.fields["order_id"] for row in rows if row.section == "reviews"] == [str(order_id)]
    erasure.erase(BUYER, Deadline.in_s(60))
    assert mysql.fetch_all("SELECT order_id FROM content") == [(None,)]
    assert mysql.fetch_all("SELECT * FROM review_slot") == []


def test_without_commerce_no_shop_can_be_reviewed(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "offers", lambda _: iter(()))
    assert review().status == 404
    assert ask("GET", f"/shops/{SHOP}/reviews").status == 404


def test_without_reviews_a_shop_has_no_totals(shop: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert review(user=OTHER).status == 201
    monkeypatch.setattr(shop_queries, "offers", lambda _: iter(()))
    reply = ask("GET", f"/shops/{SHOP}", folder="api/shops")
    assert (reply.status, reply.body["reviews"], reply.body["score_total"]) == (200, None, None)


# ---------------------------------------------------------------- recommended lists


def add_review(review_id: int, author: int, likes: int) -> None:
    mysql.write(
        "INSERT INTO content (content_type, content_id, author_id, parent_id, likes)"
        " VALUES ('review', %s, %s, %s, %s)",
        (review_id, author, SHOP, likes),
    )


def read_recommended() -> list[int]:
    recommend.rebuild_recommendations([RebuildLists([SHOP])])
    path = f"/shops/{SHOP}/reviews/recommended?limit=100"
    reply = ask("GET", path, folder="api/recommendations")
    return [int(item["id"]) for item in reply.body["items"]]


def test_one_author_has_the_two_best_of_thirty_reviews_in_a_list(shop: World) -> None:
    for number in range(1, 31):
        add_review(number, BUYER, likes=100 + number)
    add_review(31, OTHER, likes=0)
    assert read_recommended() == [30, 29, 31]


def test_the_like_of_its_author_does_not_score(shop: World) -> None:
    for review_id, author in ((1, BUYER), (2, OTHER)):
        add_review(review_id, author, likes=0)
    assert read_recommended() == [2, 1], "the newest one first"
    for user in (BUYER, 9):
        react.react(LIKE, Target("review", 1), user, True)
    shop.queues.drain()
    mysql.write("UPDATE content SET likes = 2 WHERE content_id = 1")
    mysql.write("UPDATE content SET likes = 1 WHERE content_id = 2")
    mysql.write("DELETE FROM user_counter")
    assert read_recommended() == [2, 1], "one like each"
    react.react(LIKE, Target("review", 1), BUYER, False)
    shop.queues.drain()
    mysql.write("DELETE FROM user_counter")
    assert read_recommended() == [1, 2], "taken back, the other likes count as before"

"""A flash sale on the deployed stack: offer, concurrent orders, decision, recovery."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis

from local.stack.stack import Stack
from plaza.commerce.flash_sales.redis_keys import state_key
from plaza.commerce.flash_sales.redis_sales import parse_counts
from tests.e2e.client import Client, Reply, problem, wait_until

ADMIN = 5_910_001
SHOP = 5_910_002
BUYERS = range(5_910_101, 5_910_117)


def rfc3339(in_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + in_s))


@pytest.fixture
def offer(
    base_url: str,
    sign_in: Callable[..., str],
    rows: Callable[..., Any],
    stack: Stack,
    anonymous: Client,
) -> Callable[..., Reply]:
    """``offer(stock)`` creates a voucher as an admin and returns the reply."""
    rows("INSERT IGNORE INTO shop (id, name) VALUES (%s, 'Bistro')", SHOP)
    stack.invoke("FollowBinlog", {})
    wait_until("the shop is readable", lambda: anonymous("GET", f"/shops/{SHOP}").status == 200)
    admin = Client(base_url, sign_in(ADMIN, role="admin"))

    def make(stock: int, opens_in_s: float = -5, closes_in_s: float = 600) -> Reply:
        body = {
            "shop_id": str(SHOP),
            "title": "Dinner for two",
            "price_cents": 1990,
            "stock": stock,
            "opens_at": rfc3339(opens_in_s),
            "closes_at": rfc3339(closes_in_s),
        }
        return admin("POST", "/vouchers", body)

    return make


def test_concurrent_buyers_get_one_unit_each_until_it_is_sold_out(
    stack: Stack,
    anonymous: Client,
    user: Callable[[int], Client],
    offer: Callable[..., Reply],
    rows: Callable[..., Any],
) -> None:
    made = offer(stock=5)
    assert made.status == 201
    voucher = made.json["id"]
    clients = {buyer: user(buyer) for buyer in BUYERS}
    clicks = [buyer for _ in range(3) for buyer in BUYERS]
    with ThreadPoolExecutor(4) as crowd:
        replies = list(
            crowd.map(lambda buyer: clients[buyer]("POST", f"/vouchers/{voucher}/orders"), clicks)
        )
    assert Counter(reply.status for reply in replies) == {202: 5, 200: 10, 409: 33}
    assert {problem(reply) for reply in replies if reply.status == 409} == {"sold-out"}
    orders = {
        buyer: reply.json["order_id"]
        for buyer, reply in zip(clicks, replies, strict=True)
        if reply.status == 202
    }
    for buyer, reply in zip(clicks, replies, strict=True):
        if reply.status != 409:
            assert reply.json["order_id"] == orders[buyer]
            assert reply.json["status"] != "pending" or int(reply.headers["retry-after"]) >= 1

    def decided() -> bool:
        results = [clients[buyer]("GET", f"/orders/{order}") for buyer, order in orders.items()]
        return [reply.json["status"] for reply in results] == ["success"] * 5

    wait_until("five orders have succeeded", decided)
    result = rows("SELECT buyer_id, reason FROM voucher_order WHERE voucher_id = %s", voucher)
    assert dict(result) == dict.fromkeys(orders)
    assert rows("SELECT stock FROM voucher WHERE id = %s", voucher) == ((0,),)
    with redis.Redis.from_url(stack.redis_url, decode_responses=True) as client:
        counts, sold = client.hmget(state_key(int(voucher)), "counts", "sold")
    assert (parse_counts(counts), sold) == ((0, 0, 0, 0), "5")

    [buyer, other] = list(orders)[:2]
    own = clients[buyer]("GET", "/users/me/orders").json["items"]
    assert [(order["order_id"], order["status"]) for order in own] == [(orders[buyer], "success")]
    stranger = clients[other]("GET", f"/orders/{orders[buyer]}")
    assert (stranger.status, problem(stranger)) == (404, "not-found")
    [listed] = [
        item
        for item in anonymous("GET", f"/shops/{SHOP}/vouchers").json["items"]
        if item["id"] == voucher
    ]
    assert (listed["stock"], listed["left"], listed["exact"]) == (5, 0, True)


def test_only_admins_create_vouchers_and_only_an_open_sale_accepts_orders(
    anonymous: Client, user: Callable[[int], Client], offer: Callable[..., Reply]
) -> None:
    later = offer(stock=1, opens_in_s=600, closes_in_s=1200).json
    buyer = user(BUYERS[0])
    early = buyer("POST", f"/vouchers/{later['id']}/orders")
    assert (early.status, problem(early)) == (409, "not-open")
    body = {name: later[name] for name in later.keys() - {"id", "left", "exact", "currency"}}
    refused = buyer("POST", "/vouchers", body)
    assert (refused.status, problem(refused)) == (403, "forbidden")
    unauthenticated = anonymous("POST", f"/vouchers/{later['id']}/orders")
    assert (unauthenticated.status, problem(unauthenticated)) == (401, "unauthenticated")


def test_an_order_whose_message_was_lost_is_sent_again(
    stack: Stack,
    user: Callable[[int], Client],
    offer: Callable[..., Reply],
    rows: Callable[..., Any],
) -> None:
    voucher = int(offer(stock=3).json["id"])
    # As after a crash of the API function between the reservation and the send.
    base = state_key(voucher).removesuffix("sale")
    order_id, buyer = voucher + 1_000_000, BUYERS[1]
    with redis.Redis.from_url(stack.redis_url, decode_responses=True) as client:
        generation = client.hget(base + "sale", "generation")
        client.hset(f"{base}{generation}:buyers:0", str(buyer), f"pending:{order_id}")
        client.rpush(f"{base}{generation}:recovery", f"{order_id}:{buyer}:1")
        client.hset(base + "sale", "counts", "2:1:0:0:0")
    stack.invoke("RecoverOrders", {})  # its schedule may have been first
    again = user(buyer)("POST", f"/vouchers/{voucher}/orders")
    assert (again.status, again.json["order_id"]) == (200, str(order_id))
    wait_until(
        "it is stored",
        lambda: rows("SELECT buyer_id FROM voucher_order WHERE order_id = %s", order_id),
    )
    wait_until(
        "its buyer reads the success",
        lambda: user(buyer)("GET", f"/orders/{order_id}").json["status"] == "success",
    )

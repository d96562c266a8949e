"""Sales by their state on real servers, as operators read them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench.round_trips import count_round_trips
from plaza.commerce.flash_sales import (
    cancel_order,
    finalize_vouchers,
    place_order,
    sale_report,
    waitlist,
    withdraw_vouchers,
)
from plaza.commerce.flash_sales.model import SaleState, SoldOut
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from tests.integration.commerce.flash_sales.test_order_lifecycle import buy
from tests.integration.conftest import Away
from tests.support import sales
from tests.support.consumers import statements
from tests.support.functions import authorization, event, handler
from tests.support.plaza import World

FLASH_SALES = "api/flash_sales"


def ids(state: SaleState) -> list[int]:
    return [sale.voucher.id for sale in sale_report.read_sales(state, None, 100)[0]]


def let_times_be(column: str, in_s: int, *voucher_ids: int) -> None:
    """Set when vouchers open or close, in seconds from now, to the same microsecond."""
    mysql.write(
        f"UPDATE voucher SET {column} = UTC_TIMESTAMP(6) + INTERVAL %s SECOND WHERE id IN %s",
        (in_s, voucher_ids),
    )


def ask(state: str, **query: str) -> dict[str, Any]:
    """Return the first page of sales in a state, as the API sends it."""
    request = event("flash_sales.list_sales")
    request["queryStringParameters"] = {"state": state, **query}
    response = handler(FLASH_SALES)(request, None)
    assert response["statusCode"] == 200
    assert response["headers"]["cache-control"] == "no-store"
    document: dict[str, Any] = json.loads(response["body"])
    return document


def test_each_sale_is_in_one_state_and_in_order(plaza: World) -> None:
    late, early = sales.offer(closes_in_s=7200), sales.offer(closes_in_s=60)
    next_day, soon = (
        sales.offer(opens_in_s=86_400, closes_in_s=90_000),
        sales.offer(opens_in_s=60, closes_in_s=90_000),
    )
    before, latest = sales.offer(), sales.offer()
    for voucher, ago_s in ((before, 60), (latest, 5)):
        let_times_be("closes_at", -ago_s, voucher.id)
    assert ids("running") == [early.id, late.id]
    assert ids("coming") == [soon.id, next_day.id]
    assert ids("ended") == [latest.id, before.id]
    finalize_vouchers.finalize_vouchers(closed_since_s=1)
    assert ids("ended") == [latest.id, before.id], "also when it left Redis"


@pytest.mark.parametrize("state", ["running", "coming", "ended"])
def test_sales_of_one_moment_are_paged_once_each(plaza: World, state: SaleState) -> None:
    offered = [sales.offer().id for _ in range(5)]
    let_times_be("opens_at", 60 if state == "coming" else -60, *offered)
    let_times_be("closes_at", -30 if state == "ended" else 3600, *offered)
    listed, page = [], ask(state, limit="2")
    while True:
        listed += [items["voucher_id"] for items in page["items"]]
        if page["next"] is None:
            break
        page = ask(state, limit="2", cursor=page["next"])
    assert sorted(map(int, listed)) == sorted(offered)


def test_the_units_of_a_sale_add_up(plaza: World) -> None:
    voucher = sales.offer(stock=3)
    orders = [buy(plaza, voucher.id, buyer) for buyer in (1, 2)]
    place_order.place_order(voucher.id, 3)
    for buyer in (4, 5):
        with pytest.raises(SoldOut):
            place_order.place_order(voucher.id, buyer)
        waitlist.join_waitlist(voucher.id, buyer)
    cancel_order.cancel_order(orders[0].id, 1)
    mysql.write(
        "INSERT INTO voucher_order (order_id, voucher_id, buyer_id, reason)"
        " VALUES (1, %s, 9, 'timed-out')",
        (voucher.id,),
    )
    [items] = ask("running")["items"]
    units = {name: items[name] for name in ("stock", "left", "pending", "sold", "offered")}
    assert units == {"stock": 3, "left": 0, "pending": 1, "sold": 1, "offered": 1}
    orders_of = {name: items[name] for name in ("stored", "failed", "cancelled", "waiting")}
    assert orders_of == {"stored": 1, "failed": 1, "cancelled": 1, "waiting": 1}
    assert (items["loaded"], items["withdrawn"]) == (True, False)


def test_a_sale_that_redis_lost_is_reported_from_mysql(plaza: World, redis_away: Away) -> None:
    voucher = sales.offer(stock=1)
    buy(plaza, voucher.id, 1)
    waitlist.join_waitlist(voucher.id, 4)
    redis.execute("FLUSHALL")
    with redis_away():
        [away], _ = sale_report.read_sales("running", None, 10)
    [empty] = ask("running")["items"]
    assert (away.counts, away.voucher.stock, away.waiting) == (None, 0, 1)
    assert (empty["loaded"], empty["left"], empty["sold"], empty["waiting"]) == (False, 0, 1, 1)


def test_a_withdrawn_sale_is_marked(plaza: World) -> None:
    voucher = sales.offer()
    withdraw_vouchers.withdraw_voucher(voucher.id, sales.ADMIN)
    assert [items["withdrawn"] for items in ask("running")["items"]] == [True]


def test_a_page_costs_two_statements_and_one_round_trip(plaza: World) -> None:
    sales.offer()
    taken = []
    for _ in range(2):
        with count_round_trips() as trips:
            before = statements()
            sale_report.read_sales("running", None, 100)
            taken.append((statements() - before - 1, trips.sent))
        for _ in range(5):
            sales.offer()
    assert taken == [(2, 1), (2, 1)], "the waitlists of loaded sales need no statement"


@pytest.mark.parametrize(
    "query", [{"state": "open"}, {"cursor": "WzEsMl0x"}, {"cursor": "Wy0xLDJd"}]
)
def test_an_invalid_query_is_refused(plaza: World, query: dict[str, str]) -> None:
    request = event("flash_sales.list_sales")
    request["queryStringParameters"] = query
    assert handler(FLASH_SALES)(request, None)["statusCode"] == 400


def test_sales_are_listed_for_admins(plaza: World) -> None:
    request = event("flash_sales.list_sales")
    request["headers"] |= authorization(7)
    assert handler(FLASH_SALES)(request, None)["statusCode"] == 403

"""The decision of orders, and the events on their queue."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaza.commerce.flash_sales import OrderEvent
from plaza.commerce.flash_sales.model import OrderRow, SaleGeneration, decide, split_mismatched
from plaza.commerce.flash_sales.queues import ORDERS
from plaza.infra.queues.messages import InvalidMessage

EVENT = OrderEvent(101, 5, 7, 1)
BODY = json.loads(ORDERS.encode(EVENT))

events = st.lists(
    st.builds(
        OrderEvent,
        order_id=st.integers(1, 12),
        voucher_id=st.integers(1, 2),
        buyer_id=st.integers(1, 4),
        generation=st.just(1),
    ),
    max_size=20,
).map(lambda item: list({event.order_id: event for event in item}.values()))


def test_an_event_survives_serialization() -> None:
    assert ORDERS.decode(ORDERS.encode(EVENT)) == EVENT


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        "null",
        "1",
        '"x"',
        "[" * 10_000,
        *(json.dumps({k: v for k, v in BODY.items() if k != name}) for name in BODY),
        *(
            json.dumps(BODY | {name: value})
            for name in BODY
            for value in (None, "7", 7.0, True, 0, -1, 2**63, [7], "7; DROP TABLE voucher")
        ),
    ],
    ids=lambda body: body[:60],
)
def test_an_invalid_event_is_rejected(body: str) -> None:
    with pytest.raises(InvalidMessage):
        ORDERS.decode(body)


@given(events, st.integers(0, 5))
def test_stock_is_never_oversold_and_each_buyer_gets_one(
    order_events: list[OrderEvent], stock: int
) -> None:
    rows = decide(order_events, {}, [], {1: stock, 2: 1})
    assert sorted(row.order_id for row in rows) == sorted(event.order_id for event in order_events)
    for voucher, left in ((1, stock), (2, 1)):
        successes = [row.buyer_id for row in rows if row.is_success and row.voucher_id == voucher]
        buyer_ids = {event.buyer_id for event in order_events if event.voucher_id == voucher}
        assert len(successes) == len(set(successes)) == min(left, len(buyer_ids))


@given(events)
def test_a_decided_order_is_not_decided_again(order_events: list[OrderEvent]) -> None:
    first = decide(order_events, {}, [], {1: 2, 2: 2})
    existing = {row.order_id: row for row in first}
    assert decide(order_events, existing, [], {1: 2, 2: 2}) == []
    assert split_mismatched(order_events, existing) == (
        sorted(order_events, key=lambda f: f.identity),
        [],
    )


def test_the_lowest_order_id_is_decided_first() -> None:
    early, late = OrderEvent(1, 5, 7, 1), OrderEvent(2, 5, 8, 1)
    assert decide([late, early], {}, [], {5: 1}) == [
        OrderRow(1, 5, 7, None),
        OrderRow(2, 5, 8, "sold-out"),
    ]


def test_a_buyer_with_a_success_gets_no_second_one() -> None:
    [row] = decide([EVENT], {}, [(5, 7)], {5: 10})
    assert row.reason == "already-bought"


def test_an_order_of_a_deleted_shop_fails() -> None:
    assert decide([EVENT], {}, [], {5: None}) == [OrderRow(101, 5, 7, "withdrawn")]


def test_an_event_with_the_id_of_another_order_is_mismatched() -> None:
    of_another_buyer, of_another_voucher = OrderEvent(101, 5, 8, 1), OrderEvent(101, 6, 7, 1)
    existing = {101: OrderRow(101, 5, 7, None)}
    results = [of_another_voucher, EVENT, of_another_buyer, EVENT]
    mismatched = [of_another_buyer, of_another_voucher]
    assert split_mismatched(results, existing) == ([EVENT, EVENT], mismatched)
    assert split_mismatched(results, {}) == ([EVENT, EVENT], mismatched)


@pytest.mark.parametrize(
    ("initial_stock", "buckets"),
    [(1, 1), (64, 1), (65, 2), (500, 8), (1_000_000, 15_625), (10**7, 2**14)],
)
def test_the_number_of_buckets_grows_with_the_initial_stock(
    initial_stock: int, buckets: int
) -> None:
    assert SaleGeneration(1, 1, initial_stock).buckets == buckets
    assert initial_stock / buckets < 1000

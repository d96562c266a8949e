"""What MySQL decides about orders, and what a fact on the queue may say."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaza.flash_sales import OrderEvent
from plaza.flash_sales.model import OrderRow, SaleGeneration, decide, split_mismatched
from plaza.infra.messages import InvalidMessage

FACT = OrderEvent(101, 5, 7, 1)
BODY = json.loads(FACT.to_json())

facts = st.lists(
    st.builds(
        OrderEvent,
        order_id=st.integers(1, 12),
        voucher_id=st.integers(1, 2),
        buyer_id=st.integers(1, 4),
        generation=st.just(1),
    ),
    max_size=20,
).map(lambda found: list({fact.order_id: fact for fact in found}.values()))


def test_a_fact_is_read_as_it_was_written() -> None:
    assert OrderEvent.from_json(FACT.to_json()) == FACT


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
def test_what_is_no_fact_is_a_bad_record(body: str) -> None:
    with pytest.raises(InvalidMessage):
        OrderEvent.from_json(body)


@given(facts, st.integers(0, 5))
def test_no_more_than_there_is_is_sold_and_one_to_each(found: list[OrderEvent], stock: int) -> None:
    rows = decide(found, {}, [], {1: stock, 2: 1})
    assert sorted(row.order_id for row in rows) == sorted(fact.order_id for fact in found)
    for voucher, left in ((1, stock), (2, 1)):
        won = [row.buyer_id for row in rows if row.is_success and row.voucher_id == voucher]
        wanted = {fact.buyer_id for fact in found if fact.voucher_id == voucher}
        assert len(won) == len(set(won)) == min(left, len(wanted))


@given(facts)
def test_what_is_decided_is_not_decided_again(found: list[OrderEvent]) -> None:
    first = decide(found, {}, [], {1: 2, 2: 2})
    known = {row.order_id: row for row in first}
    assert decide(found, known, [], {1: 2, 2: 2}) == []
    assert split_mismatched(found, known) == (sorted(found, key=lambda f: f.identity), [])


def test_the_order_that_was_made_first_is_decided_first() -> None:
    early, late = OrderEvent(1, 5, 7, 1), OrderEvent(2, 5, 8, 1)
    assert decide([late, early], {}, [], {5: 1}) == [
        OrderRow(1, 5, 7, None),
        OrderRow(2, 5, 8, "sold-out"),
    ]


def test_who_has_one_gets_no_other() -> None:
    [row] = decide([FACT], {}, [(5, 7)], {5: 10})
    assert row.reason == "already-bought"


def test_an_order_of_a_shop_that_was_deleted_takes_nothing() -> None:
    assert decide([FACT], {}, [], {5: None}) == [OrderRow(101, 5, 7, "withdrawn")]


def test_an_id_alone_is_no_order() -> None:
    of_another_buyer, of_another_voucher = (
        FACT.__class__(101, 5, 8, 1),
        FACT.__class__(101, 6, 7, 1),
    )
    known = {101: OrderRow(101, 5, 7, None)}
    found = [of_another_voucher, FACT, of_another_buyer, FACT]
    mismatched = [of_another_buyer, of_another_voucher]
    assert split_mismatched(found, known) == ([FACT, FACT], mismatched)
    assert split_mismatched(found, {}) == ([FACT, FACT], mismatched)


@pytest.mark.parametrize(
    ("initial_stock", "buckets"),
    [(1, 1), (64, 1), (65, 2), (500, 8), (1_000_000, 15_625), (10**7, 2**14)],
)
def test_buyers_are_spread_over_as_many_keys_as_they_need(initial_stock: int, buckets: int) -> None:
    assert SaleGeneration(1, 1, initial_stock).buckets == buckets
    assert initial_stock / buckets < 1000

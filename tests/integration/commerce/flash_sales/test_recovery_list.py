"""The recovery list of a sale: overdue orders first, entries of decided orders removed."""

from __future__ import annotations

import pytest

from plaza.commerce.flash_sales import (
    CANCELLED,
    FAILED,
    PENDING,
    SUCCESS,
    Order,
    persist,
    place_order,
    queries,
    recover_orders,
    redis_keys,
    redis_orders,
    redis_pointers,
    redis_sales,
)
from plaza.commerce.flash_sales.model import OrderRow, SaleGeneration
from plaza.commerce.flash_sales.queues import ORDERS
from plaza.infra.redis import redis
from tests.support import sales
from tests.support.plaza import World

RESEND_AFTER_US = 300_000_000


def begin(stock: int = 5) -> SaleGeneration:
    """Return a sale that is live in Redis."""
    voucher = sales.offer(stock=stock)
    return redis_sales.find_sales([voucher.id])[voucher.id]


def age(sale: SaleGeneration) -> None:
    """Make all entries of the recovery list overdue, in their order."""
    key = redis_keys.recovery_key(sale)
    for index, entry in enumerate(entries(sale), 1):
        redis.execute("LSET", key, index - 1, f"{entry.rpartition(':')[0]}:{index}")


def entries(sale: SaleGeneration) -> list[str]:
    return [str(e) for e in redis.execute("LRANGE", redis_keys.recovery_key(sale), 0, -1)]


def listed(sale: SaleGeneration) -> list[int]:
    """Return the order ids of the recovery list."""
    return [int(entry.split(":")[0]) for entry in entries(sale)]


def find_overdue(sale: SaleGeneration, limit: int = 500) -> tuple[list[int], bool]:
    """Return (the ids of overdue orders, whether the sale may have more)."""
    result, more = redis_orders.find_overdue([sale], RESEND_AFTER_US, limit)
    sales.check(sale.voucher_id)
    return [event.order_id for event in result], more == [sale]


def acknowledge(sale: SaleGeneration, order_id: int, buyer_id: int, reason: str | None) -> None:
    redis_orders.acknowledge([OrderRow(order_id, sale.voucher_id, buyer_id, reason)])
    sales.check(sale.voucher_id)


def test_overdue_orders_are_recovered_in_order_and_again_after_resend_after(plaza: World) -> None:
    sale = begin()
    for buyer in (1, 2, 3):
        redis_orders.reserve(sale, buyer, buyer)
    assert find_overdue(sale) == ([], False)
    age(sale)
    assert find_overdue(sale) == ([1, 2, 3], False)
    assert find_overdue(sale) == ([], False)
    age(sale)
    assert find_overdue(sale) == ([1, 2, 3], False), "a second time"
    assert listed(sale) == [1, 2, 3]


def test_an_order_that_is_not_overdue_ends_the_search(plaza: World) -> None:
    sale = begin()
    redis_orders.reserve(sale, 1, 1)
    age(sale)
    redis_orders.reserve(sale, 2, 2)
    assert find_overdue(sale) == ([1], False)
    assert listed(sale) == [2, 1]


def test_entries_of_decided_orders_are_removed(plaza: World) -> None:
    sale = begin()
    for buyer in (1, 2, 3, 4):
        redis_orders.reserve(sale, buyer, buyer)
    acknowledge(sale, 1, 1, None)
    acknowledge(sale, 2, 2, "sold-out")
    acknowledge(sale, 3, 3, "cancelled")
    assert listed(sale) == [1, 2, 3, 4]
    age(sale)
    assert find_overdue(sale) == ([4], False)
    assert listed(sale) == [4]
    acknowledge(sale, 4, 4, None)
    assert listed(sale) == [], "no order is pending"
    assert find_overdue(sale) == ([], False)


def test_the_list_ends_with_the_last_pending_order(plaza: World) -> None:
    sale = begin()
    for reason in (None, "sold-out", "cancelled"):
        for buyer in (1, 2):
            redis_orders.reserve(sale, 10 + buyer, buyer)
        acknowledge(sale, 11, 1, "sold-out")
        assert listed(sale) == [11, 12]
        acknowledge(sale, 12, 2, reason)
        assert listed(sale) == []
        acknowledge(sale, 12, 2, "cancelled")


def test_a_page_of_decided_orders_does_not_end_the_recovery(plaza: World) -> None:
    sale = begin()
    for buyer in (1, 2, 3):
        redis_orders.reserve(sale, buyer, buyer)
    acknowledge(sale, 1, 1, None)
    acknowledge(sale, 2, 2, None)
    age(sale)
    assert find_overdue(sale, limit=2) == ([], True)
    assert find_overdue(sale, limit=2) == ([3], False)


def test_the_recovery_reads_all_pages_of_decided_orders(plaza: World) -> None:
    sale = begin(stock=1)
    sales.list_overdue(sale, *((number, number) for number in range(1, 1_100)))
    placed, _ = place_order.place_order(sale.voucher_id, 7)
    plaza.queues.take(ORDERS)
    age(sale)
    assert recover_orders.recover_orders(decide_after_s=10**10) == 1
    [sent] = sales.parse_events(plaza.queues.take(ORDERS))
    assert (sent.order_id, listed(sale)) == (placed.id, [placed.id])


def test_all_pages_of_sales_are_recovered(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recover_orders, "_VOUCHERS", 1)
    for order_id in (2, 3):
        sale = begin()
        redis_orders.reserve(sale, order_id, 7)
        age(sale)
    assert recover_orders.recover_orders(resend_after_s=0, decide_after_s=10**9) == 2


def test_nothing_is_sent_again_while_the_queue_has_a_long_backlog(plaza: World) -> None:
    sale = begin()
    redis_orders.reserve(sale, 2, 7)
    age(sale)
    waiting = ["an order"] * 10_001
    plaza.queues.messages[ORDERS] = list(waiting)
    assert recover_orders.recover_orders(resend_after_s=0, decide_after_s=10**9) == 0
    assert plaza.queues.messages[ORDERS] == waiting
    plaza.queues.take(ORDERS)
    age(sale)
    assert recover_orders.recover_orders(resend_after_s=0, decide_after_s=10**9) == 1


def test_two_recoveries_at_once_move_each_entry_once(plaza: World) -> None:
    sale = begin()
    redis_orders.reserve(sale, 1, 1)
    redis_orders.reserve(sale, 2, 2)
    age(sale)
    keys = (redis_keys.state_key(sale.voucher_id), redis_keys.recovery_key(sale))
    due = redis.run(redis_orders.OVERDUE, keys, (sale.generation, RESEND_AFTER_US, 500))
    buckets = [redis_keys.buyers_key(sale, buyer) for buyer in (1, 2)]
    args = (sale.generation, *due)
    assert redis.run(redis_orders.RECOVER, (*keys, *buckets), args) == ["1:1", "2:2"]
    assert redis.run(redis_orders.RECOVER, (*keys, *buckets), args) == [], "a repeat"
    assert listed(sale) == [1, 2]
    stale = (sale.generation + 1, *due)
    assert redis.run(redis_orders.RECOVER, (*keys, *buckets), stale) == []


def test_a_late_copy_of_a_released_reservation_is_recovered_and_released(plaza: World) -> None:
    sale = begin()
    redis_orders.reserve(sale, 2, 2)
    redis_orders.reserve(sale, 1, 1)
    acknowledge(sale, 1, 1, "sold-out")
    redis_orders.reserve(sale, 1, 1)  # a command that was resent
    assert listed(sale) == [2, 1, 1]
    age(sale)
    assert set(find_overdue(sale)[0]) == {1, 2}
    acknowledge(sale, 1, 1, "sold-out")
    age(sale)
    assert find_overdue(sale) == ([2], False)
    assert (listed(sale), sales.counts(sale.voucher_id)) == ([2], (4, 1, 0))


def test_a_newer_order_of_a_buyer_is_recovered_without_the_older_one(plaza: World) -> None:
    sale = begin()
    redis_orders.reserve(sale, 3, 8)
    redis_orders.reserve(sale, 1, 7)
    acknowledge(sale, 1, 7, "sold-out")
    redis_orders.reserve(sale, 2, 7)
    assert listed(sale) == [3, 1, 2]
    age(sale)
    assert find_overdue(sale) == ([3, 2], False)


def test_a_success_takes_the_unit_of_another_pending_order_of_its_buyer(plaza: World) -> None:
    sale = begin(stock=3)
    redis_orders.reserve(sale, 2, 7)
    acknowledge(sale, 1, 7, None)
    assert sales.counts(sale.voucher_id) == (2, 0, 1)
    acknowledge(sale, 1, 7, None)
    acknowledge(sale, 2, 7, "already-bought")
    assert sales.counts(sale.voucher_id) == (2, 0, 1)
    age(sale)
    assert find_overdue(sale) == ([], False)
    # MySQL decided the cancellation of the first before the second one.
    acknowledge(sale, 1, 7, "cancelled")
    acknowledge(sale, 2, 7, None)
    assert sales.counts(sale.voucher_id) == (2, 0, 1)


def test_a_success_that_replaces_another_one_of_its_buyer_is_counted_once(plaza: World) -> None:
    """Given a cancellation that MySQL decided before the second order, and Redis gets after it."""
    sale = begin(stock=3)
    acknowledge(sale, 1, 7, None)
    acknowledge(sale, 2, 7, None)
    assert sales.counts(sale.voucher_id) == (2, 0, 1)
    acknowledge(sale, 1, 7, "cancelled")
    assert sales.counts(sale.voucher_id) == (2, 0, 1)


def test_a_success_that_was_not_pending_takes_its_unit_from_stock_once(plaza: World) -> None:
    sale = begin(stock=1)
    for _ in range(2):
        acknowledge(sale, 1, 7, None)
        assert sales.counts(sale.voucher_id) == (0, 0, 1)
    assert redis_orders.reserve(sale, 2, 8).code == "SOLD_OUT"


def test_a_failure_of_an_order_that_is_not_pending_returns_no_unit(plaza: World) -> None:
    sale = begin(stock=2)
    redis_orders.reserve(sale, 2, 7)
    acknowledge(sale, 1, 7, "sold-out")
    acknowledge(sale, 1, 8, "sold-out")
    assert sales.counts(sale.voucher_id) == (1, 1, 0)


def test_a_failure_of_a_success_changes_nothing(plaza: World) -> None:
    sale = begin(stock=2)
    acknowledge(sale, 1, 7, None)
    acknowledge(sale, 1, 7, "sold-out")
    assert sales.counts(sale.voucher_id) == (1, 0, 1)


def test_a_finalized_sale_gets_no_unit_back(plaza: World) -> None:
    sale = begin(stock=2)
    redis_orders.reserve(sale, 2, 7)
    redis.execute("HSET", redis_keys.state_key(sale.voucher_id), "phase", "finalized")
    redis_orders.acknowledge([OrderRow(2, sale.voucher_id, 7, "sold-out")])
    assert sales.counts(sale.voucher_id) == (1, 1, 0)


def test_orders_of_another_generation_are_not_recovered(plaza: World) -> None:
    sale = begin()
    redis_orders.reserve(sale, 2, 7)
    age(sale)
    before = entries(sale)
    redis.execute("HINCRBY", redis_keys.state_key(sale.voucher_id), "generation", 1)
    assert redis_orders.find_overdue([sale], RESEND_AFTER_US, 1) == ([], [])
    keys = (redis_keys.state_key(sale.voucher_id), redis_keys.recovery_key(sale))
    args: tuple[int | str, ...] = (sale.generation, *before)
    assert redis.run(redis_orders.RECOVER, (*keys, redis_keys.buyers_key(sale, 7)), args) == []
    assert entries(sale) == before


def test_a_buyer_lists_an_order_that_a_success_replaced(plaza: World) -> None:
    sale = begin()
    placed, _ = place_order.place_order(sale.voucher_id, 7)
    event = sales.parse_events(plaza.queues.messages[ORDERS])[0]
    acknowledge(sale, 1, 7, None)
    assert sales.list_orders(7, None, 10) == ([placed], None)
    assert queries.read_order(placed.id, 7).status == PENDING
    persist.persist_orders([event])
    assert sales.list_orders(7, None, 10)[0] == [placed._replace(status=SUCCESS)]


def test_a_pointer_to_the_id_of_another_order_is_listed_as_failed(plaza: World) -> None:
    sale = begin()
    placed, _ = place_order.place_order(sale.voucher_id, 7)
    plaza.queues.drain()
    redis_pointers.write_pointer(8, placed.id, sale.voucher_id)
    failed = Order(placed.id, sale.voucher_id, FAILED, "timed-out")
    assert sales.list_orders(8, None, 10) == ([failed], None)
    assert queries.read_order(placed.id, 8) == failed


def test_a_state_of_the_former_layout_counts_as_not_loaded(plaza: World) -> None:
    sale = begin(stock=2)
    key = redis_keys.state_key(sale.voucher_id)
    redis.execute("DEL", key)
    former = f"{key.removesuffix('sale')}state"
    fields = ("generation", 1, "phase", "live", "stock", 9, "pending", 0, "initial_stock", 2)
    redis.execute("HSET", former, *fields)
    assert redis_sales.find_sales([sale.voucher_id]) == {}
    placed, _ = place_order.place_order(sale.voucher_id, 7)
    assert placed.status == PENDING
    assert sales.counts(sale.voucher_id) == (1, 1, 0)
    assert redis.execute("HGET", former, "stock") == "9"


def test_a_cancelled_pending_order_is_not_recovered(plaza: World) -> None:
    sale = begin()
    placed, _ = place_order.place_order(sale.voucher_id, 7)
    plaza.queues.drain()
    acknowledge(sale, placed.id, 7, CANCELLED)
    age(sale)
    assert find_overdue(sale) == ([], False)
    assert sales.counts(sale.voucher_id) == (5, 0, 0)

"""Units of running sales: damage in Redis is found beside MySQL, and the sale is loaded again."""

from __future__ import annotations

from typing import Any

import pytest

from plaza.commerce.flash_sales import (
    cancel_order,
    inspection,
    place_order,
    redis_keys,
    redis_sales,
)
from plaza.commerce.flash_sales.model import NotReady, Voucher
from plaza.commerce.flash_sales.queues import ORDERS
from plaza.infra.redis import redis
from plaza.operate.reconciliation import run_steps
from tests.support import sales
from tests.support.consumers import statements
from tests.support.plaza import World
from tests.support.reconciliations import findings_of, run
from tests.support.stores import add_users

UNITS, BUYERS = 6, (2, 3, 4)


@pytest.fixture
def voucher(plaza: World) -> Voucher:
    """A running sale of six units: three are sold, and one of them was cancelled."""
    add_users(*range(1, 20))
    offered = sales.offer(UNITS)
    orders = [order_unit(plaza, offered, buyer) for buyer in BUYERS]
    cancel_order.cancel_order(orders[0], BUYERS[0])
    plaza.queues.drain()
    assert sales.counts(offered.id) == (4, 0, 2)
    return offered


def order_unit(world: World, voucher: Voucher, buyer: int, *, decided: bool = True) -> int:
    """Order, again while the sale is loaded; return the id of the order."""
    for _ in range(3):
        try:
            order, _ = place_order.place_order(voucher.id, buyer)
        except NotReady:
            continue
        if decided:
            world.queues.drain()
        return order.id
    raise AssertionError("the sale is not loaded")


def change(voucher: Voucher, field: str, value: int | str) -> None:
    redis.execute("HSET", redis_keys.state_key(voucher.id), field, value)


DAMAGES: dict[str, tuple[dict[str, int], dict[str, int]]] = {
    "a unit too many": ({}, {"stock": 1}),
    "a unit too few": ({}, {"stock": -1}),
    "a unit is offered to no buyer": ({}, {"offered": 1}),
    "units below zero": ({}, {"stock": -9, "pending": 9}),
    "sold units of no order": ({"sold": 3}, {"stock": -1}),
    "a sold unit is sold again": ({"sold": 1}, {"stock": 1}),
    "a cancelled order that MySQL does not have": ({"cancelled": 2}, {}),
    "another number of units": ({"initial_stock": 7}, {"stock": 1}),
}
"""Fields of the state, and what is added to its counts."""


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found_and_the_sale_sells_what_mysql_has(
    plaza: World, voucher: Voucher, name: str
) -> None:
    assert run(plaza).differing == 0
    fields, counted = DAMAGES[name]
    for field, value in fields.items():
        change(voucher, field, value)
    sales.change_counts(voucher.id, **counted)
    report = run(plaza)
    assert findings_of(report) == {("list", "sale", f"voucher:{voucher.id}")}
    assert (report.repaired, report.is_resolved) == (1, True)
    left = sales.stock(voucher.id)
    order_unit(plaza, voucher, 9)
    counts = sales.read_counts(voucher.id)
    assert counts is not None
    assert (counts.stock, counts.sold, counts.generation) == (left - 1, UNITS - left + 1, 2)
    assert run(plaza).differing == 0
    assert sales.find_violations(voucher.id) == ""


def test_orders_that_are_pending_or_decided_and_not_acknowledged_are_no_difference(
    plaza: World, voucher: Voucher
) -> None:
    order_unit(plaza, voucher, 9, decided=False)
    held = plaza.queues.take(ORDERS)
    assert run(plaza).differing == 0
    redis_state = redis.execute("HGETALL", redis_keys.state_key(voucher.id))
    for body in held:
        plaza.queues.send(ORDERS, body)
    plaza.queues.drain()
    for field, value in redis_state.items():  # as if the acknowledgement were on its way
        change(voucher, field, value)
    assert sales.counts(voucher.id) == (3, 1, 2)
    assert run(plaza).differing == 0


def test_a_cancelled_order_whose_unit_returns_is_no_difference(
    plaza: World, voucher: Voucher, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = order_unit(plaza, voucher, 9)
    before = redis.execute("HGETALL", redis_keys.state_key(voucher.id))
    cancel_order.cancel_order(order, 9)
    for field, value in before.items():
        change(voucher, field, value)
    assert inspection.compare_sales([voucher.id])[voucher.id].differences == ""


def test_a_sale_that_changes_between_both_looks_is_passed_over(
    plaza: World, voucher: Voucher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given damage, and an order before the second look."""
    sales.change_counts(voucher.id, stock=-1)
    recheck = run_steps.CHECKS["list"]

    def order_and_recheck(suspects: Any) -> Any:
        order_unit(plaza, voucher, 9, decided=False)
        return recheck(suspects)

    monkeypatch.setitem(run_steps.CHECKS, "list", order_and_recheck)
    report = run(plaza)
    assert (report.differing, report.tally.skipped) == (0, 1)


def test_a_sale_that_is_right_again_before_the_repair_goes_on(
    plaza: World, voucher: Voucher
) -> None:
    inspection.reload_sales([voucher.id])
    counts = sales.read_counts(voucher.id)
    assert counts is not None
    assert (counts.live, counts.generation) == (True, 1)


def test_a_repair_loses_no_order_that_is_queued(plaza: World, voucher: Voucher) -> None:
    order = order_unit(plaza, voucher, 9, decided=False)
    held = plaza.queues.take(ORDERS)
    sales.change_counts(voucher.id, stock=1)
    assert run(plaza).repaired == 1
    for body in held:
        plaza.queues.send(ORDERS, body)
    plaza.queues.drain()
    assert sales.rows(voucher.id)[order].is_success
    order_unit(plaza, voucher, 10)
    assert sales.counts(voucher.id) == (2, 0, 4)
    assert sales.find_violations(voucher.id) == ""


def test_a_repair_leaves_no_key_of_the_generation_before(plaza: World, voucher: Voucher) -> None:
    [sale] = redis_sales.find_sales([voucher.id]).values()
    sales.change_counts(voucher.id, stock=1)
    assert run(plaza).repaired == 1
    keys = [*redis_keys.other_keys(sale), redis_keys.state_key(voucher.id)]
    keys += [redis_keys.bucket_key(sale, bucket) for bucket in range(sale.buckets)]
    assert sum(redis.pipeline([("EXISTS", key) for key in keys])) == 0


def test_sales_that_are_over_withdrawn_or_of_another_term_are_left_out(
    plaza: World, voucher: Voucher
) -> None:
    sales.change_counts(voucher.id, stock=1)
    change(voucher, "term", "0" * 40)
    assert inspection.compare_sales([voucher.id]) == {}
    change(voucher, "term", redis_sales.read_term(voucher.id))
    for phase in ("loading", "draining", "withdrawn", "finalized"):
        change(voucher, "phase", phase)
        assert inspection.compare_sales([voucher.id]) == {}


def test_more_sales_cost_no_more_statements(plaza: World, voucher: Voucher) -> None:
    def count() -> int:
        before = statements()
        assert run(plaza).differing == 0
        return statements() - before

    few = count()
    for _ in range(10):
        sales.offer(UNITS)
    assert count() <= few + 2 * len(redis.nodes())

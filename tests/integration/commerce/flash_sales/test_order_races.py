"""Consumers of the queue and of the DLQ that decide the same orders in separate processes."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack

import pytest

from plaza.commerce.flash_sales import OrderEvent, place_order, queries
from plaza.commerce.flash_sales.queues import ORDERS
from plaza.infra.mysql import mysql
from tests.support import sales
from tests.support.consumers import deadlocks, end, go, working
from tests.support.depth import choose
from tests.support.plaza import World

BUYERS = choose(60, 200)
BATCH = 20


def decider(
    consumer: str, events: Sequence[OrderEvent]
) -> AbstractContextManager[subprocess.Popen[str]]:
    """Start a process that decides ``events`` in batches after ``go``."""
    bodies = [ORDERS.encode(event) for event in events]
    return working(consumer, [bodies[i : i + BATCH] for i in range(0, len(bodies), BATCH)])


@pytest.mark.sampled
def test_concurrent_deciders_decide_each_order_once(
    plaza: World, set_up: Callable[..., None]
) -> None:
    set_up(orders_per_s=100_000)
    vouchers = [sales.offer(stock=BUYERS) for _ in range(2)]
    for buyer in range(1, BUYERS + 1):
        for voucher in vouchers:
            place_order.place_order(voucher.id, buyer)
    events = sales.parse_events(plaza.queues.take(ORDERS))
    # An older generation sold the others.
    mysql.write("UPDATE voucher SET stock = %s", (BUYERS // 2,))
    before, chance = deadlocks(), random.Random(1)
    with ExitStack() as stack:
        processes = [
            stack.enter_context(decider(consumer, chance.sample(events, len(events))))
            for consumer in ("orders", "orders", "orders given up", "orders given up")
        ]
        for process in processes:
            go(process)
        for process in processes:
            end(process)
    assert deadlocks() == before
    for voucher in vouchers:
        rows = sales.rows(voucher.id).values()
        won = sum(row.is_success for row in rows)
        assert len(rows) == BUYERS
        assert won == BUYERS // 2
        sales.check(voucher.id)
        assert sales.counts(voucher.id) == (won, 0, won)
        assert sales.stock(voucher.id) == 0
        for row in rows:
            assert queries.read_order(row.order_id, row.buyer_id) == row.order

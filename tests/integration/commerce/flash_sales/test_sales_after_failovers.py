"""Sales after a failover that lost the master's newest writes: what was answered stays true."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from local.audit.backlog import count_pending
from plaza.commerce.flash_sales import (
    SUCCESS,
    Voucher,
    cancel_order,
    codes,
    place_order,
    queries,
    recover_orders,
    waitlist,
)
from plaza.commerce.flash_sales.model import NotReady, NotWaiting, SoldOut
from plaza.infra.redis import connections
from plaza.infra.runtime.process import clear_caches
from tests.chaos.proxy import Proxy
from tests.integration.commerce.flash_sales.test_order_lifecycle import buy
from tests.support import sales
from tests.support.plaza import World
from tests.support.redis_pair import RedisPair, migrated, pair, proxy

__all__ = ["migrated", "pair", "proxy"]  # fixtures


@contextmanager
def lose_writes(pair: RedisPair, proxy: Proxy) -> Iterator[None]:
    """Promote a replica that has nothing of what the block writes."""
    with pair.lose_unreplicated_writes():
        yield
    proxy.set("redis", "refuse")
    proxy.set("redis", "pass", target=pair.master.port)
    clear_caches()


@pytest.fixture
def sold_out(plaza: World) -> Voucher:
    """A voucher whose only unit is sold to buyer 1."""
    voucher = sales.offer(stock=1)
    buy(plaza, voucher.id, 1)
    return voucher


def cancel_of(voucher: Voucher, buyer: int) -> None:
    """Cancel the order of a buyer."""
    order, _ = place_order.place_order(voucher.id, buyer)
    cancel_order.cancel_order(order.id, buyer)


def test_an_order_whose_reservation_was_lost_is_never_missing(
    plaza: World, pair: RedisPair, proxy: Proxy
) -> None:
    voucher = sales.offer()
    buy(plaza, voucher.id, 1)
    with lose_writes(pair, proxy):
        placed, _ = place_order.place_order(voucher.id, 2)
    for use in (queries.read_order, cancel_order.cancel_order, codes.issue_code):
        with pytest.raises(NotReady):
            use(placed.id, 2)
    plaza.queues.drain()
    assert queries.read_order(placed.id, 2) == placed._replace(status=SUCCESS)


def test_an_order_whose_confirmation_was_lost_is_in_transit_until_the_recovery(
    plaza: World, pair: RedisPair, proxy: Proxy
) -> None:
    """No queue and no outbox has it, and it is not overdue: waits for quiet count it."""
    voucher = sales.offer()
    placed, _ = place_order.place_order(voucher.id, 2)
    with lose_writes(pair, proxy):
        plaza.queues.drain()
    plaza.queues.drain()
    stored = placed._replace(status=SUCCESS)
    assert count_pending(connections.client()) == (0, 1)
    assert queries.read_order(placed.id, 2) == placed
    assert [view.order for view in queries.list_orders(2, None, 10)[0]] == [stored]
    recover_orders.recover_orders()
    assert count_pending(connections.client()) == (0, 0)
    assert queries.read_order(placed.id, 2) == stored
    sales.check(voucher.id)


def test_a_position_that_was_lost_is_read_at_once(
    pair: RedisPair, proxy: Proxy, sold_out: Voucher
) -> None:
    with lose_writes(pair, proxy):
        waitlist.join_waitlist(sold_out.id, 2)
    waitlist.join_waitlist(sold_out.id, 3)
    assert waitlist.read_position(sold_out.id, 2).position == 1
    assert waitlist.read_position(sold_out.id, 3).position == 2


@pytest.mark.parametrize("later", [True, False], ids=["another joined", "no other waits"])
def test_a_unit_that_returns_is_offered_to_a_buyer_whose_position_was_lost(
    pair: RedisPair, proxy: Proxy, sold_out: Voucher, later: bool
) -> None:
    with lose_writes(pair, proxy):
        waitlist.join_waitlist(sold_out.id, 2)
    if later:
        waitlist.join_waitlist(sold_out.id, 3)
    cancel_of(sold_out, 1)
    with pytest.raises(SoldOut):
        place_order.place_order(sold_out.id, 4)
    assert waitlist.read_position(sold_out.id, 2).accept_by_us
    sales.check(sold_out.id)


def test_a_buyer_who_left_is_offered_nothing(
    pair: RedisPair, proxy: Proxy, sold_out: Voucher
) -> None:
    """The numbers of waiting buyers agree, so only the names show it."""
    waitlist.join_waitlist(sold_out.id, 2)
    with lose_writes(pair, proxy):
        waitlist.leave_waitlist(sold_out.id, 2)
        waitlist.join_waitlist(sold_out.id, 3)
    recover_orders.recover_orders()
    cancel_of(sold_out, 1)
    with pytest.raises(NotWaiting):
        waitlist.read_position(sold_out.id, 2)
    assert waitlist.read_position(sold_out.id, 3).accept_by_us
    sales.check(sold_out.id)


def test_a_unit_that_the_older_copy_has_unsold_can_be_sold_before_a_buyer_who_waits(
    plaza: World, pair: RedisPair, proxy: Proxy
) -> None:
    """The limit in docs/limits.md: one unit is unsold in the copy, so one new buyer gets one."""
    voucher = sales.offer(stock=2)
    buy(plaza, voucher.id, 1)
    with lose_writes(pair, proxy):
        buy(plaza, voucher.id, 5)
        waitlist.join_waitlist(voucher.id, 2)
        cancel_of(voucher, 1)  # its unit is offered to 2
    order, _ = place_order.place_order(voucher.id, 4)
    with pytest.raises(SoldOut):
        place_order.place_order(voucher.id, 6)
    plaza.queues.drain()
    recover_orders.recover_orders()
    assert queries.read_order(order.id, 4).status == SUCCESS
    assert waitlist.read_position(voucher.id, 2).position == 1
    assert sales.holders(voucher.id) == [4, 5]
    cancel_order.cancel_order(order.id, 4)
    recover_orders.recover_orders()
    assert waitlist.read_position(voucher.id, 2).accept_by_us
    sales.check(voucher.id)

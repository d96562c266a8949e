"""The waitlist of a voucher on real servers: units that return are offered in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from plaza.commerce.flash_sales import (
    FAILED,
    PENDING,
    SUCCESS,
    cancel_order,
    finalize_vouchers,
    load_sale,
    model,
    mysql_waitlist,
    place_order,
    queries,
    recover_orders,
    redis_keys,
    redis_orders,
    redis_sales,
    redis_waitlist,
    waitlist,
)
from plaza.commerce.flash_sales.model import (
    AlreadyOrdered,
    NotOpen,
    NotWaiting,
    OrderRow,
    SaleGeneration,
    SoldOut,
    UnitsLeft,
    VoucherMissing,
    VoucherWithdrawn,
    WaitlistFull,
)
from plaza.commerce.flash_sales.mysql_waitlist import add
from plaza.commerce.flash_sales.redis_waitlist import try_join
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime.errors import PlazaError
from plaza.infra.runtime.process import clear_caches
from tests.integration.commerce.flash_sales.test_order_lifecycle import buy, raise_redis_down
from tests.support import sales
from tests.support.failures import failing
from tests.support.plaza import World


def check(voucher_id: int, stock: int, sold: int, offered: int, waiting: int) -> None:
    """Assert the counts in Redis without pending orders."""
    sales.check(voucher_id)
    result = sales.read_counts(voucher_id)
    assert result is not None
    counted = (result.stock, result.pending, result.sold, result.offered, result.waiting)
    assert counted == (stock, 0, sold, offered, waiting)


def wait(voucher_id: int, *buyers: int) -> None:
    for buyer in buyers:
        waitlist.join_waitlist(voucher_id, buyer)


def let_wait(voucher_id: int) -> SaleGeneration:
    """Put buyer 2 on the waitlist in spite of a unit in stock, as when a sale has just opened."""
    [sale] = redis_sales.find_sales([voucher_id]).values()
    redis.execute("HSET", redis_keys.state_key(voucher_id), "counts", "1:0:0:1:0")
    redis.execute("ZADD", redis_keys.waitlist_key(sale), 5, 2)
    return sale


def end_offers(voucher_id: int) -> None:
    """Let the time to accept pass."""
    [sale] = redis_sales.find_sales([voucher_id]).values()
    for buyer in redis.execute("ZRANGE", redis_keys.offers_key(sale), 0, -1):
        redis.execute("ZADD", redis_keys.offers_key(sale), 1, buyer)


def check_only(sale: SaleGeneration, buyer_id: int, seq: int | None, max_waiting: int) -> str:
    """Check as ``try_join``; raise RedisDown instead of adding the buyer."""
    return try_join(sale, buyer_id, None, max_waiting) if seq is None else raise_redis_down()


def end_sale(voucher_id: int, state: str) -> None:
    """Bring a sale to ``state`` while its last offers and its waitlist are in Redis."""
    [sale] = redis_sales.find_sales([voucher_id]).values()
    if state == "closed":
        redis.execute("HSET", redis_keys.state_key(voucher_id), "closes_us", sales.now_us())
    elif state == "early":
        redis.execute("HSET", redis_keys.state_key(voucher_id), "opens_us", sales.now_us() * 2)
    elif state == "withdrawn":
        redis_sales.withdraw([sale])
    else:
        redis_sales.expire(sale)


def test_a_returned_unit_is_offered_to_the_first_who_waits_and_to_no_other_buyer(
    plaza: World,
) -> None:
    voucher = sales.offer(stock=1)
    order = buy(plaza, voucher.id, 1)
    with pytest.raises(SoldOut):
        place_order.place_order(voucher.id, 2)
    wait(voucher.id, 2, 3)
    assert waitlist.read_position(voucher.id, 3).position == 2
    assert waitlist.join_waitlist(voucher.id, 2).position == 1  # a repeat
    cancel_order.cancel_order(order.id, 1)
    check(voucher.id, stock=0, sold=0, offered=1, waiting=1)
    for other in (3, 4, 1):
        with pytest.raises(SoldOut):
            place_order.place_order(voucher.id, other)
    position = waitlist.read_position(voucher.id, 2)
    assert position.position is None
    assert position.accept_by_us is not None
    assert position.accept_by_us > sales.now_us()
    accepted, created = place_order.place_order(voucher.id, 2)  # in spite of a cached refusal
    assert (accepted.status, created) == (PENDING, True)
    plaza.queues.drain()
    check(voucher.id, stock=0, sold=1, offered=0, waiting=1)
    assert sales.holders(voucher.id) == [2]
    assert mysql_waitlist.count([voucher.id]) == {voucher.id: 1}
    with pytest.raises(NotWaiting):
        waitlist.read_position(voucher.id, 2)


def test_an_offer_that_ends_goes_to_the_next_and_its_buyer_joins_at_the_end(
    plaza: World,
) -> None:
    voucher = sales.offer(stock=1)
    order = buy(plaza, voucher.id, 1)
    wait(voucher.id, 2, 3)
    cancel_order.cancel_order(order.id, 1)
    end_offers(voucher.id)
    with pytest.raises(NotWaiting):
        waitlist.read_position(voucher.id, 2)
    with pytest.raises(SoldOut):
        place_order.place_order(voucher.id, 2)
    recover_orders.recover_orders()
    check(voucher.id, stock=0, sold=0, offered=1, waiting=0)
    assert waitlist.read_position(voucher.id, 3).accept_by_us
    assert waitlist.join_waitlist(voucher.id, 2).position == 1
    end_offers(voucher.id)
    assert waitlist.join_waitlist(voucher.id, 3).position == 1  # the unit is offered to 2
    assert waitlist.read_position(voucher.id, 2).accept_by_us
    waitlist.leave_waitlist(voucher.id, 2)
    assert waitlist.read_position(voucher.id, 3).accept_by_us
    for _ in range(2):
        waitlist.leave_waitlist(voucher.id, 3)
    check(voucher.id, stock=1, sold=0, offered=0, waiting=0)
    assert mysql_waitlist.count([voucher.id]) == {}


def test_who_cannot_wait_is_refused(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    voucher, early = sales.offer(stock=1), sales.offer(opens_in_s=60)
    with pytest.raises(UnitsLeft):
        waitlist.join_waitlist(voucher.id, 1)
    buy(plaza, voucher.id, 1)
    with pytest.raises(AlreadyOrdered):
        waitlist.join_waitlist(voucher.id, 1)
    with pytest.raises(NotOpen):
        waitlist.join_waitlist(early.id, 1)
    with pytest.raises(VoucherMissing):
        waitlist.join_waitlist(31, 1)
    monkeypatch.setattr(waitlist, "MAX_WAITING", 1)
    wait(voucher.id, 2)
    with pytest.raises(WaitlistFull):
        waitlist.join_waitlist(voucher.id, 3)
    wait(voucher.id, 2)
    assert model.MAX_WAITING == 100_000


@pytest.mark.parametrize(
    ("state", "error"),
    [
        ("closed", NotOpen),
        ("early", NotOpen),
        ("finalized", NotOpen),
        ("withdrawn", VoucherWithdrawn),
    ],
)
@pytest.mark.parametrize("buyer", [2, 3, 4], ids=["offer ended", "waits", "unknown"])
def test_a_sale_that_is_not_open_takes_no_buyer_whatever_the_buyer_had(
    plaza: World, state: str, error: type[PlazaError], buyer: int
) -> None:
    voucher = sales.offer(stock=1)
    order = buy(plaza, voucher.id, 1)
    wait(voucher.id, 2, 3)
    cancel_order.cancel_order(order.id, 1)
    end_offers(voucher.id)
    end_sale(voucher.id, state)
    mysql_waitlist.delete_all(voucher.id)  # as the finalization did
    with pytest.raises(error):
        waitlist.join_waitlist(voucher.id, buyer)
    assert mysql_waitlist.count([voucher.id]) == {}
    sales.check(voucher.id)


@pytest.mark.parametrize(("state", "error"), [("closed", NotOpen), ("withdrawn", VoucherWithdrawn)])
def test_a_sale_that_ends_during_a_request_to_join_refuses_it_and_stores_no_row(
    plaza: World, monkeypatch: pytest.MonkeyPatch, state: str, error: type[PlazaError]
) -> None:
    voucher = sales.offer(stock=1)
    buy(plaza, voucher.id, 1)

    def end_and_add(voucher_id: int, buyer_id: int) -> int:
        end_sale(voucher_id, state)
        return add(voucher_id, buyer_id)

    monkeypatch.setattr(mysql_waitlist, "add", end_and_add)
    with pytest.raises(error):
        waitlist.join_waitlist(voucher.id, 2)
    assert mysql_waitlist.count([voucher.id]) == {}
    check(voucher.id, stock=0, sold=1, offered=0, waiting=0)


def test_a_buyer_whose_offer_ended_gets_no_position_of_a_full_waitlist(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    voucher = sales.offer(stock=1)
    order = buy(plaza, voucher.id, 1)
    wait(voucher.id, 2, 3, 4, 5)
    cancel_order.cancel_order(order.id, 1)
    end_offers(voucher.id)
    monkeypatch.setattr(waitlist, "MAX_WAITING", 2)
    with pytest.raises(WaitlistFull):
        waitlist.join_waitlist(voucher.id, 2)
    assert waitlist.read_position(voucher.id, 3).accept_by_us  # the unit went to the next
    assert mysql_waitlist.count([voucher.id]) == {voucher.id: 3}
    check(voucher.id, stock=0, sold=0, offered=1, waiting=2)


def test_a_buyer_whose_offer_ended_can_order_a_unit_without_other_waiting_buyers(
    plaza: World,
) -> None:
    voucher = sales.offer(stock=1)
    order = buy(plaza, voucher.id, 1)
    wait(voucher.id, 2)
    cancel_order.cancel_order(order.id, 1)
    end_offers(voucher.id)
    with pytest.raises(UnitsLeft):
        waitlist.join_waitlist(voucher.id, 2)
    assert buy(plaza, voucher.id, 2).voucher_id == voucher.id
    check(voucher.id, stock=0, sold=1, offered=0, waiting=0)


def test_offers_are_made_again_in_the_same_order_after_redis_lost_its_data(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    voucher = sales.offer(stock=3)
    order = buy(plaza, voucher.id, 1)
    buy(plaza, voucher.id, 9)
    buy(plaza, voucher.id, 8)
    wait(voucher.id, 5, 4, 3, 2)
    cancel_order.cancel_order(order.id, 1)
    redis.execute("FLUSHALL")
    clear_caches()
    monkeypatch.setattr(load_sale, "_PAGE", 1)
    load_sale.load_sale(voucher.id)
    check(voucher.id, stock=0, sold=2, offered=1, waiting=3)
    assert waitlist.read_position(voucher.id, 5).accept_by_us
    assert [waitlist.read_position(voucher.id, buyer).position for buyer in (4, 3, 2)] == [1, 2, 3]


def test_the_recovery_adds_a_buyer_whose_request_ended_before_redis(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    voucher = sales.offer(stock=1)
    order = buy(plaza, voucher.id, 1)
    with monkeypatch.context() as patch:
        patch.setattr(redis_waitlist, "try_join", check_only)
        with pytest.raises(RedisDown):
            waitlist.join_waitlist(voucher.id, 2)
    wait(voucher.id, 3)
    recover_orders.recover_orders()
    assert waitlist.read_position(voucher.id, 2).position == 1
    cancel_order.cancel_order(order.id, 1)
    recover_orders.recover_orders()
    check(voucher.id, stock=0, sold=0, offered=1, waiting=1)


def order_a_unit(voucher_id: int) -> None:
    with pytest.raises(SoldOut):
        place_order.place_order(voucher_id, 4)


def join_once_more(voucher_id: int) -> None:
    assert waitlist.join_waitlist(voucher_id, 3).position == 1


def recover(_: int) -> None:
    recover_orders.recover_orders()


@pytest.mark.parametrize("use", [order_a_unit, join_once_more, recover])
def test_a_waitlist_of_another_term_is_read_before_a_unit_is_offered(
    plaza: World, use: Callable[[int], None]
) -> None:
    """Given a node that lacks the first buyer who waits."""
    voucher = sales.offer(stock=1)
    order = buy(plaza, voucher.id, 1)
    add(voucher.id, 2)
    state = redis_keys.state_key(voucher.id)
    redis.execute("HSET", state, "term", "of another node")
    if use is not join_once_more:
        wait(voucher.id, 3)
    cancel_order.cancel_order(order.id, 1)
    clear_caches()
    use(voucher.id)
    assert waitlist.read_position(voucher.id, 2).accept_by_us
    check(voucher.id, stock=0, sold=0, offered=1, waiting=1)
    assert redis.execute("HGET", state, "term") == redis_sales.read_term(voucher.id)


def test_a_sale_that_the_version_before_loaded_stays_open(plaza: World) -> None:
    """It stores no term. During a deploy both versions load sales."""
    voucher = sales.offer(stock=1)
    order = buy(plaza, voucher.id, 1)
    wait(voucher.id, 2)
    redis.execute("HDEL", redis_keys.state_key(voucher.id), "term")
    cancel_order.cancel_order(order.id, 1)
    recover_orders.recover_orders()
    assert waitlist.read_position(voucher.id, 2).accept_by_us
    check(voucher.id, stock=0, sold=0, offered=1, waiting=0)


def test_the_recovery_reads_a_waitlist_of_another_term_once(plaza: World) -> None:
    voucher = sales.offer(stock=1)
    buy(plaza, voucher.id, 1)
    add(voucher.id, 2)
    wait(voucher.id, 3)
    state = redis_keys.state_key(voucher.id)
    redis.execute("HSET", state, "term", "of another node")
    recover_orders.recover_orders()
    assert redis.execute("HGET", state, "term") == redis_sales.read_term(voucher.id)
    check(voucher.id, stock=0, sold=1, offered=0, waiting=2)


def test_a_position_that_redis_lacks_is_read_from_mysql_unless_the_sale_is_finalized(
    plaza: World,
) -> None:
    voucher = sales.offer(stock=1)
    buy(plaza, voucher.id, 1)
    add(voucher.id, 2)
    assert waitlist.read_position(voucher.id, 2).position == 1
    check(voucher.id, stock=0, sold=1, offered=0, waiting=1)
    add(voucher.id, 3)
    end_sale(voucher.id, "finalized")
    with pytest.raises(NotWaiting):
        waitlist.read_position(voucher.id, 3)


def test_a_buyer_who_joins_while_absent_buyers_are_removed_keeps_the_position(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    voucher = sales.offer(stock=1)
    buy(plaza, voucher.id, 1)
    wait(voucher.id, 2)
    mysql_waitlist.delete_all(voucher.id)  # a request to leave, which did not reach Redis
    leave = redis_waitlist.leave

    def leave_after_a_join(sale: SaleGeneration, buyers: Sequence[int], **only: bool) -> int:
        if buyers:
            wait(voucher.id, 2)
        return leave(sale, buyers, **only)

    monkeypatch.setattr(redis_waitlist, "leave", leave_after_a_join)
    redis.execute("HSET", redis_keys.state_key(voucher.id), "term", "of another node")
    load_sale.load_sale(voucher.id)
    check(voucher.id, stock=0, sold=1, offered=0, waiting=1)


def test_a_buyer_who_stays_after_a_request_to_leave_without_an_answer_is_stored(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    voucher = sales.offer(stock=1)
    buy(plaza, voucher.id, 1)
    wait(voucher.id, 2)
    with monkeypatch.context() as patch:
        patch.setattr(redis_waitlist, "leave", raise_redis_down)
        with pytest.raises(RedisDown):
            waitlist.leave_waitlist(voucher.id, 2)
    wait(voucher.id, 2)
    assert mysql_waitlist.count([voucher.id]) == {voucher.id: 1}
    check(voucher.id, stock=0, sold=1, offered=0, waiting=1)


def test_a_success_that_redis_did_not_reserve_takes_the_offer_of_its_buyer(plaza: World) -> None:
    """Given a failover that lost the acceptance of an offer, and the order that is stored."""
    voucher = sales.offer(stock=2)
    order = buy(plaza, voucher.id, 1)
    buy(plaza, voucher.id, 9)
    wait(voucher.id, 2, 3)
    cancel_order.cancel_order(order.id, 1)
    redis_orders.acknowledge([OrderRow(order.id + 1, voucher.id, 2, None)])
    check(voucher.id, stock=0, sold=2, offered=0, waiting=1)


def test_the_unit_of_a_failed_order_is_offered(plaza: World) -> None:
    voucher = sales.offer(stock=1)
    placed, _ = place_order.place_order(voucher.id, 1)
    wait(voucher.id, 2)
    mysql.write("UPDATE voucher SET stock = 0")  # an older generation sold it
    plaza.queues.drain()
    assert queries.read_order(placed.id, 1).status == FAILED
    check(voucher.id, stock=0, sold=0, offered=1, waiting=0)


def test_a_sale_that_is_over_ends_its_offers_before_it_is_finalized(plaza: World) -> None:
    voucher = sales.offer(stock=1)
    order = buy(plaza, voucher.id, 1)
    wait(voucher.id, 2, 3)
    cancel_order.cancel_order(order.id, 1)
    end_offers(voucher.id)
    closed_us = sales.now_us() - 120_000_000
    redis.execute("HSET", redis_keys.state_key(voucher.id), "closes_us", closed_us)
    mysql.write("UPDATE voucher SET closes_at = UTC_TIMESTAMP(6) - INTERVAL 2 MINUTE")
    clear_caches()
    with pytest.raises(NotOpen):
        waitlist.join_waitlist(voucher.id, 7)
    assert finalize_vouchers.finalize_vouchers() == 0
    recover_orders.recover_orders()
    check(voucher.id, stock=1, sold=0, offered=0, waiting=1)
    assert finalize_vouchers.finalize_vouchers() == 1
    assert mysql_waitlist.count([voucher.id]) == {}
    sales.check(voucher.id)


def test_an_accepted_offer_can_be_cancelled_and_goes_to_the_next(plaza: World) -> None:
    voucher = sales.offer(stock=1)
    order = buy(plaza, voucher.id, 1)
    wait(voucher.id, 2, 3)
    cancel_order.cancel_order(order.id, 1)
    accepted = buy(plaza, voucher.id, 2)
    cancel_order.cancel_order(accepted.id, 2)
    assert waitlist.read_position(voucher.id, 3).accept_by_us
    assert buy(plaza, voucher.id, 3).voucher_id == voucher.id
    check(voucher.id, stock=0, sold=1, offered=0, waiting=0)
    assert sales.list_orders(3, None, 10)[0][0].status == SUCCESS


def test_a_success_that_redis_did_not_reserve_ends_the_wait_of_its_buyer(plaza: World) -> None:
    voucher = sales.offer(stock=2)
    buy(plaza, voucher.id, 1)
    order = buy(plaza, voucher.id, 9)
    wait(voucher.id, 2, 3)
    redis_orders.acknowledge([OrderRow(order.id + 1, voucher.id, 2, None)])
    [sale] = redis_sales.find_sales([voucher.id]).values()
    assert redis.execute("ZRANGE", redis_keys.waitlist_key(sale), 0, -1) == ["3"]
    assert redis_waitlist.read_state(sale).waiting == 1


def test_a_buyer_who_joins_again_stays_at_the_first_position(plaza: World) -> None:
    voucher = sales.offer(stock=1)
    buy(plaza, voucher.id, 1)
    [sale] = redis_sales.find_sales([voucher.id]).values()
    assert redis_waitlist.join(sale, [(5, 2), (6, 3)])
    assert redis_waitlist.join(sale, [(7, 2)])
    assert redis.execute("ZRANGE", redis_keys.waitlist_key(sale), 0, -1) == ["2", "3"]
    check(voucher.id, stock=0, sold=1, offered=0, waiting=2)


def test_buyers_who_have_an_order_or_an_offer_by_now_do_not_wait(plaza: World) -> None:
    """Given a recovery that read the waitlist before they got it."""
    voucher = sales.offer(stock=2)
    order = buy(plaza, voucher.id, 1)
    buy(plaza, voucher.id, 9)
    wait(voucher.id, 2)
    cancel_order.cancel_order(order.id, 1)
    [sale] = redis_sales.find_sales([voucher.id]).values()
    assert redis_waitlist.join(sale, [(5, 2), (6, 9), (7, 3)])
    check(voucher.id, stock=0, sold=1, offered=1, waiting=1)


def test_a_unit_in_stock_is_offered_to_a_buyer_who_joins(plaza: World) -> None:
    voucher = sales.offer(stock=1)
    [sale] = redis_sales.find_sales([voucher.id]).values()
    assert redis_waitlist.join(sale, [(5, 2)])
    check(voucher.id, stock=0, sold=0, offered=1, waiting=0)


def test_nothing_leaves_or_is_offered_by_a_caller_that_read_another_generation(
    plaza: World,
) -> None:
    """Given a generation that has just opened, with stock and a waitlist."""
    voucher = sales.offer(stock=1)
    sale = let_wait(voucher.id)
    assert redis_waitlist.leave(sale._replace(generation=sale.generation + 1), [2]) == 0
    check(voucher.id, stock=1, sold=0, offered=0, waiting=1)
    assert redis_waitlist.leave(sale, []) == 1
    check(voucher.id, stock=0, sold=0, offered=1, waiting=0)


def test_the_end_of_an_offer_leaves_other_offers_and_positions(plaza: World) -> None:
    """Given a recovery that found an offer of each, which another one has ended since."""
    voucher = sales.offer(stock=1)
    order = buy(plaza, voucher.id, 1)
    wait(voucher.id, 2, 3)
    cancel_order.cancel_order(order.id, 1)
    [sale] = redis_sales.find_sales([voucher.id]).values()
    assert redis_waitlist.leave(sale, [2, 3], only_ended=True) == 0
    check(voucher.id, stock=0, sold=0, offered=1, waiting=1)


def test_a_buyer_who_leaves_is_not_counted(plaza: World) -> None:
    voucher = sales.offer(stock=1)
    buy(plaza, voucher.id, 1)
    wait(voucher.id, 2, 3)
    waitlist.leave_waitlist(voucher.id, 2)
    check(voucher.id, stock=0, sold=1, offered=0, waiting=1)


@pytest.mark.parametrize(
    ("field", "value"), [("phase", "withdrawn"), ("opens_us", 2**52), ("closes_us", 1)]
)
def test_units_are_offered_while_the_sale_is_live_and_open(
    plaza: World, field: str, value: str | int
) -> None:
    voucher = sales.offer(stock=1)
    sale = let_wait(voucher.id)
    redis.execute("HSET", redis_keys.state_key(voucher.id), field, value)
    assert redis_waitlist.leave(sale, []) == 0


def test_an_offer_ends_with_the_sale(plaza: World) -> None:
    voucher = sales.offer(stock=1)
    sale = let_wait(voucher.id)
    closes_us = sales.now_us() + 30_000_000
    assert closes_us < sales.now_us() + model.OFFER_US
    redis.execute("HSET", redis_keys.state_key(voucher.id), "closes_us", closes_us)
    assert redis_waitlist.leave(sale, []) == 1
    assert int(redis.execute("ZSCORE", redis_keys.offers_key(sale), 2)) == closes_us


def test_a_call_makes_at_most_100_offers(plaza: World) -> None:
    voucher = sales.offer(stock=150)
    [sale] = redis_sales.find_sales([voucher.id]).values()
    redis.execute("HSET", redis_keys.state_key(voucher.id), "counts", "150:0:0:150:0")
    for buyer in range(1, 151):
        redis.execute("ZADD", redis_keys.waitlist_key(sale), buyer, buyer)
    assert [redis_waitlist.leave(sale, []) for _ in range(3)] == [100, 50, 0]
    check(voucher.id, stock=0, sold=0, offered=150, waiting=0)


def test_a_buyer_with_an_offer_takes_its_unit_although_others_are_free(plaza: World) -> None:
    voucher = sales.offer(stock=2)
    orders = [buy(plaza, voucher.id, buyer) for buyer in (1, 9)]
    wait(voucher.id, 2)
    for order, buyer in zip(orders, (1, 9), strict=True):
        cancel_order.cancel_order(order.id, buyer)
    check(voucher.id, stock=1, sold=0, offered=1, waiting=0)
    place_order.place_order(voucher.id, 2)
    result = sales.read_counts(voucher.id)
    assert result is not None
    assert (result.stock, result.pending, result.offered) == (1, 1, 0)
    plaza.queues.drain()
    check(voucher.id, stock=1, sold=1, offered=0, waiting=0)


def test_a_unit_in_stock_belongs_to_the_buyers_who_wait(plaza: World) -> None:
    voucher = sales.offer(stock=1)
    sale = let_wait(voucher.id)
    assert redis_orders.reserve(sale, 1, 9).code == "SOLD_OUT"
    check(voucher.id, stock=1, sold=0, offered=0, waiting=1)


def test_a_buyer_joins_when_the_state_of_the_sale_is_complete(plaza: World) -> None:
    voucher = sales.offer(stock=1)
    buy(plaza, voucher.id, 1)
    [sale] = redis_sales.find_sales([voucher.id]).values()
    redis.execute("HSET", redis_keys.state_key(voucher.id), "phase", "loading")
    assert redis_waitlist.try_join(sale, 2, 5, 10) == "LOADING"
    redis.execute("HSET", redis_keys.state_key(voucher.id), "phase", "live")
    assert redis_waitlist.try_join(sale, 2, None, 10) == "JOINED"
    check(voucher.id, stock=0, sold=1, offered=0, waiting=0)
    assert redis_waitlist.try_join(sale, 2, 5, 10) == "JOINED"
    check(voucher.id, stock=0, sold=1, offered=0, waiting=1)


def test_a_buyer_lists_positions_and_offers_of_all_sales_but_no_ended_offer(plaza: World) -> None:
    first, second, third = (sales.offer(stock=1).id for _ in range(3))
    orders = {voucher_id: buy(plaza, voucher_id, 1) for voucher_id in (first, second, third)}
    wait(first, 3, 2)
    wait(second, 2)
    wait(third, 2)
    cancel_order.cancel_order(orders[second].id, 1)
    positions, last = waitlist.list_positions(2, None, 20)
    assert [(i, p.position, p.accept_by_us is not None) for i, p in positions] == [
        (third, 1, False),
        (second, None, True),
        (first, 2, False),
    ]
    assert last is None
    page, last = waitlist.list_positions(2, None, 1)
    assert ([i for i, _ in page], last) == ([third], third)
    page, last = waitlist.list_positions(2, last, 2)
    assert ([i for i, _ in page], last) == ([second, first], None)
    end_offers(second)
    assert [i for i, _ in waitlist.list_positions(2, None, 20)[0]] == [third, first]
    assert waitlist.list_positions(4, None, 20) == ([], None)


@pytest.mark.parametrize(
    "join",
    [recover, load_sale.load_sale, lambda voucher_id: waitlist.read_position(voucher_id, 3)],
    ids=["recovery", "load", "read"],
)
def test_a_buyer_who_leaves_while_redis_reads_the_waitlist_again_waits_no_more(
    plaza: World, monkeypatch: pytest.MonkeyPatch, join: Callable[[int], object]
) -> None:
    voucher = sales.offer(stock=1)
    buy(plaza, voucher.id, 1)
    wait(voucher.id, 2, 3)
    [sale] = redis_sales.find_sales([voucher.id]).values()
    redis_waitlist.leave(sale, [3])  # Redis lost it
    if join is load_sale.load_sale:
        redis.execute("HSET", redis_keys.state_key(voucher.id), "term", "of another node")
    join_in_redis = redis_waitlist.join

    def leave_before_join(*args: Any) -> bool:
        monkeypatch.setattr(redis_waitlist, "join", join_in_redis)
        waitlist.leave_waitlist(voucher.id, 3)
        return join_in_redis(*args)

    monkeypatch.setattr(redis_waitlist, "join", leave_before_join)
    with suppress(NotWaiting):
        join(voucher.id)
    assert redis_waitlist.read_buyers(sale) == [2]
    assert mysql_waitlist.count([voucher.id]) == {voucher.id: 1}


def test_a_buyer_who_leaves_on_one_device_and_joins_on_another_waits_in_both_stores_or_none(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    voucher = sales.offer(stock=1)
    buy(plaza, voucher.id, 1)

    def add_and_leave(voucher_id: int, buyer_id: int) -> int:
        monkeypatch.setattr(mysql_waitlist, "add", add)
        seq = add(voucher_id, buyer_id)
        waitlist.leave_waitlist(voucher_id, buyer_id)
        return seq

    monkeypatch.setattr(mysql_waitlist, "add", add_and_leave)
    assert waitlist.join_waitlist(voucher.id, 2).position == 1
    assert mysql_waitlist.count([voucher.id]) == {voucher.id: 1}


def test_a_buyer_whose_accepted_offer_was_cancelled_waits_no_more(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an offer that was accepted while MySQL could not delete the position."""
    voucher = sales.offer(stock=1)
    order = buy(plaza, voucher.id, 1)
    wait(voucher.id, 2, 3)
    cancel_order.cancel_order(order.id, 1)
    with monkeypatch.context() as patch:
        patch.setattr(mysql_waitlist, "delete", failing(MysqlDown("down, simulated by a test")))
        accepted = buy(plaza, voucher.id, 2)
    cancel_order.cancel_order(accepted.id, 2)
    [sale] = redis_sales.find_sales([voucher.id]).values()
    recover_orders.recover_orders()
    assert redis_waitlist.read_buyers(sale) == [3]
    with pytest.raises(NotWaiting):
        waitlist.read_position(voucher.id, 2)


def test_the_row_of_an_ended_offer_is_deleted_before_its_unit_returns(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    voucher = sales.offer(stock=1)
    order = buy(plaza, voucher.id, 1)
    wait(voucher.id, 2, 3)
    cancel_order.cancel_order(order.id, 1)
    end_offers(voucher.id)
    with monkeypatch.context() as patch:
        patch.setattr(redis_waitlist, "leave", raise_redis_down)
        with pytest.raises(RedisDown):
            recover_orders.recover_orders()
    assert mysql_waitlist.count([voucher.id]) == {voucher.id: 1}


def test_the_recovery_deletes_the_row_of_a_buyer_whose_order_succeeded(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an offer that was accepted while MySQL could not delete the position."""
    voucher = sales.offer(stock=1)
    order = buy(plaza, voucher.id, 1)
    wait(voucher.id, 2, 3)
    cancel_order.cancel_order(order.id, 1)
    with monkeypatch.context() as patch:
        patch.setattr(mysql_waitlist, "delete", failing(MysqlDown("down, simulated by a test")))
        buy(plaza, voucher.id, 2)
    recover_orders.recover_orders()
    assert [buyer for _, buyer in mysql_waitlist.read(voucher.id, 0, 10)] == [3]

"""Flash sales on real servers: orders are reserved, stored and acknowledged; and the failures."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

import pytest

from plaza.commerce.flash_sales import (
    CANCELLED,
    FAILED,
    PENDING,
    SUCCESS,
    Order,
    OrderEvent,
    backlog,
    cancel_order,
    finalize_vouchers,
    mysql_orders,
    mysql_vouchers,
    persist,
    place_order,
    queries,
    recover_orders,
    redis_keys,
    redis_load,
    redis_orders,
    redis_pointers,
    redis_sales,
    sale_status,
    waitlist,
    withdraw_vouchers,
)
from plaza.commerce.flash_sales.model import (
    MAX_PENDING_S,
    NotOpen,
    NotReady,
    OrderMismatch,
    OrderMissing,
    OrderRateExceeded,
    SaleGeneration,
    SoldOut,
    VoucherMissing,
    VoucherWithdrawn,
)
from plaza.commerce.flash_sales.queues import ORDERS, ORDERS_DLQ
from plaza.commerce.shops.model import ShopMissing
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.queues.queue import QueueDown
from plaza.infra.redis import connections, redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import Gone
from plaza.infra.runtime.process import clear_caches
from tests.integration.commerce.flash_sales.test_order_lifecycle import raise_redis_down
from tests.integration.conftest import Away
from tests.support import sales
from tests.support.call_log import record_call
from tests.support.failures import failing
from tests.support.keyspace import delete_keys, find_keys, own_client
from tests.support.logs import read_log
from tests.support.plaza import World


def order(voucher_id: int, buyer_id: int) -> Order:
    """Place a new order and check the invariant of the sale."""
    result, created = place_order.place_order(voucher_id, buyer_id)
    assert created
    sales.check(voucher_id)
    return result


def drain(plaza: World, voucher_id: int) -> None:
    plaza.queues.drain()
    sales.check(voucher_id)


# ---------------------------------------------------------------- ordering


def test_an_order_is_pending_until_it_is_stored_and_then_a_success(plaza: World) -> None:
    voucher = sales.offer(stock=3)
    placed = order(voucher.id, 7)
    assert placed.status == PENDING
    assert sales.counts(voucher.id) == (2, 1, 0)
    assert queries.read_order(placed.id, 7) == placed
    assert sales.list_orders(7, None, 10) == ([placed], None)
    drain(plaza, voucher.id)
    assert sales.counts(voucher.id) == (2, 0, 1)
    assert sales.stock(voucher.id) == 2
    assert queries.read_order(placed.id, 7) == placed._replace(status=SUCCESS)
    assert sales.list_orders(7, None, 10) == ([placed._replace(status=SUCCESS)], None)
    redis.execute("FLUSHALL")
    assert queries.read_order(placed.id, 7) == placed._replace(status=SUCCESS)


def test_a_repeat_returns_the_same_order_in_any_state_and_also_when_sold_out(
    plaza: World,
) -> None:
    voucher = sales.offer(stock=1)
    placed = order(voucher.id, 7)
    assert place_order.place_order(voucher.id, 7) == (placed, False)
    with pytest.raises(SoldOut):
        place_order.place_order(voucher.id, 8)
    assert place_order.place_order(voucher.id, 7) == (placed, False)  # with a cached refusal
    drain(plaza, voucher.id)
    assert place_order.place_order(voucher.id, 7) == (placed._replace(status=SUCCESS), False)
    assert plaza.queues.messages[ORDERS] == []


def test_an_order_of_another_buyer_is_missing(plaza: World) -> None:
    voucher = sales.offer()
    placed = order(voucher.id, 7)
    with pytest.raises(NotReady):  # the pointer may be lost
        queries.read_order(placed.id, 8)
    drain(plaza, voucher.id)
    with pytest.raises(OrderMissing):
        queries.read_order(placed.id, 8)
    day_before = placed.id - (MAX_PENDING_S + 60 << 32)
    day_after = placed.id + (MAX_PENDING_S << 32)
    for stray in (day_before, day_after):
        with pytest.raises(OrderMissing):
            queries.read_order(stray, 7)


def test_a_sale_opens_and_closes_by_the_clock_of_redis(plaza: World) -> None:
    early = sales.offer(opens_in_s=3600, closes_in_s=7200)
    for _ in range(2):
        with pytest.raises(NotOpen, match="not begun"):
            place_order.place_order(early.id, 7)
    voucher = sales.offer(stock=3)
    placed = order(voucher.id, 7)
    redis.execute("HSET", redis_keys.state_key(voucher.id), "closes_us", sales.now_us() - 1)
    for _ in range(2):
        with pytest.raises(NotOpen, match="over"):
            place_order.place_order(voucher.id, 8)
    assert place_order.place_order(voucher.id, 7) == (placed, False)


def test_a_sale_is_loaded_before_it_opens(plaza: World) -> None:
    soon, later = sales.offer(opens_in_s=300), sales.offer(opens_in_s=3000, closes_in_s=4000)
    redis.execute("FLUSHALL")
    recover_orders.recover_orders()
    result = sales.read_counts(soon.id)
    assert result is not None
    assert result.live
    assert sales.read_counts(later.id) is None


def test_the_status_of_a_sale_follows_it(plaza: World) -> None:
    early = sales.offer(opens_in_s=300)
    status = sale_status.read_status(early.id)
    assert (status.phase, status.left, status.exact) == ("upcoming", 3, True)
    assert 0 < status.opens_us - status.now_us <= 300_000_000
    voucher = sales.offer(stock=1)
    assert sale_status.read_status(voucher.id).phase == "open"
    order(voucher.id, 1)
    assert sale_status.read_status(voucher.id).phase == "open"  # cached for 1 s
    clear_caches()
    assert sale_status.read_status(voucher.id)[3:5] == (0, 0)
    assert sale_status.read_status(voucher.id).phase == "sold-out"
    redis.execute("FLUSHALL")
    clear_caches()
    lost = sale_status.read_status(voucher.id)
    assert (lost.phase, lost.exact) == ("open", False)
    with pytest.raises(VoucherMissing):
        sale_status.read_status(31)


def test_a_voucher_that_does_not_exist_is_missing(plaza: World) -> None:
    for _ in range(2):
        with pytest.raises(VoucherMissing):
            place_order.place_order(31, 7)


def test_orders_are_limited_to_the_rate_at_which_they_can_be_stored(
    plaza: World, set_up: Callable[..., None]
) -> None:
    set_up(orders_per_s=2)
    voucher = sales.offer(stock=100)
    buyers = iter(range(1, 50))
    with pytest.raises(OrderRateExceeded) as refused:
        deque((place_order.place_order(voucher.id, buyer) for buyer in buyers), maxlen=0)
    assert refused.value.retry_after_s >= 1
    sales.check(voucher.id)
    assert 2 <= sales.counts(voucher.id)[1] <= 4
    sales.change_counts(voucher.id, full_us=-10_000_000)  # advances the clock by 10 s
    order(voucher.id, 1000)


def test_pending_orders_are_limited_by_the_settings(
    plaza: World, set_up: Callable[..., None]
) -> None:
    set_up(max_pending_orders=2)
    voucher = sales.offer(stock=100)
    order(voucher.id, 1)
    order(voucher.id, 2)
    with pytest.raises(OrderRateExceeded):
        place_order.place_order(voucher.id, 3)
    drain(plaza, voucher.id)
    order(voucher.id, 3)


def test_sold_out_takes_precedence_over_rate_limited(
    plaza: World, set_up: Callable[..., None]
) -> None:
    set_up(orders_per_s=1)
    voucher = sales.offer(stock=1)
    order(voucher.id, 1)
    with pytest.raises(SoldOut):
        place_order.place_order(voucher.id, 2)


def test_an_unused_id_is_used_for_the_next_order(plaza: World) -> None:
    voucher = sales.offer(stock=2)
    first = order(voucher.id, 1)
    for _ in range(20):
        place_order.place_order(voucher.id, 1)
    assert 0 < order(voucher.id, 2).id - first.id < 2**33


def test_3000_concurrent_repeats_of_one_buyer_are_one_order(plaza: World) -> None:
    voucher = sales.offer(stock=10)
    placed = order(voucher.id, 99)
    sale = redis_sales.find_sales([voucher.id])[voucher.id]
    keys = redis_keys.reserve_keys(sale, 7)
    source = redis_orders.RESERVE.source
    replies: list[str] = []

    def reserve_repeatedly(first: int) -> None:
        with own_client() as own:
            for n in range(300):
                args = (
                    sale.generation,
                    placed.id + first * 1000 + n + 1,
                    7,
                    100,
                    10_000,
                )
                replies.append(own.eval(source, 4, *keys, *args).partition(" ")[0])

    threads = [threading.Thread(target=reserve_repeatedly, args=(n,)) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(replies) == ["EXISTS"] * 2999 + ["RESERVED"]
    sales.check(voucher.id)
    assert sales.counts(voucher.id) == (8, 2, 0)


# ---------------------------------------------------------------- the queue and its failures


def test_an_order_that_sqs_refused_is_stored_and_decided_by_the_recovery(plaza: World) -> None:
    voucher = sales.offer()
    plaza.queues.away = True
    placed = order(voucher.id, 7)
    assert placed.status == PENDING
    [stored] = mysql_orders.read_spilled(None, 10)
    assert stored.identity == (placed.id, voucher.id, 7)
    with pytest.raises(QueueDown):  # after it decided the outbox
        recover_orders.recover_orders()
    sales.check(voucher.id)
    assert queries.read_order(placed.id, 7).status == SUCCESS
    assert mysql_orders.read_spilled(None, 10) == []
    plaza.queues.away = False
    assert recover_orders.recover_orders(resend_after_s=0) == 0


@pytest.mark.parametrize("first", range(8), ids=lambda first: f"job {first} first")
def test_without_sqs_the_recovery_does_all_that_needs_no_queue(
    plaza: World, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """Given processes that ended after MySQL had a cancelled order and a withdrawal, an offer that
    has ended, an old pending order, and a sale that opens soon and is not in Redis."""
    sold, withdrawn, offered = (sales.offer(stock=1) for _ in range(3))
    stuck, coming = sales.offer(), sales.offer(opens_in_s=60)
    cancelled, returned = order(sold.id, 1), order(offered.id, 1)
    drain(plaza, sold.id)
    waitlist.join_waitlist(offered.id, 2)
    cancel_order.cancel_order(returned.id, 1)
    [sale] = redis_sales.find_sales([offered.id]).values()
    redis.execute("ZADD", redis_keys.offers_key(sale), 1, 2)
    with monkeypatch.context() as patch:
        patch.setattr(redis_orders, "acknowledge", raise_redis_down)
        with pytest.raises(RedisDown):
            cancel_order.cancel_order(cancelled.id, 1)
    mysql_vouchers.mark_withdrawn(withdrawn.id, sales.ADMIN)
    redis.execute("UNLINK", redis_keys.state_key(coming.id))
    pending = order(stuck.id, 3)
    plaza.queues.take(ORDERS)
    plaza.queues.away = True
    monkeypatch.setattr(clock, "now_s", lambda: time.time() // 60 * 60 + 60 * first)
    with pytest.raises(QueueDown):
        recover_orders.recover_orders(resend_after_s=0, decide_after_s=-600)
    assert sales.counts(sold.id) == (1, 0, 0)
    assert sales.counts(offered.id) == (1, 0, 0)
    assert queries.read_order(pending.id, 3).status == SUCCESS
    assert sales.read_counts(coming.id) is not None
    with pytest.raises(VoucherWithdrawn):
        place_order.place_order(withdrawn.id, 5)


def test_an_order_that_sqs_and_mysql_refused_is_returned_only_after_one_stored_it(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    voucher = sales.offer()

    plaza.queues.away = True
    with monkeypatch.context() as patch:
        patch.setattr(mysql_orders, "spill", failing(MysqlDown("down, simulated by a test")))
        for _ in range(2):
            with pytest.raises(MysqlDown):
                place_order.place_order(voucher.id, 7)
    plaza.queues.away = False
    result, created = place_order.place_order(voucher.id, 7)
    assert not created
    lose_redis()
    drain(plaza, voucher.id)
    assert queries.read_order(result.id, 7).status == SUCCESS


def test_an_order_whose_first_request_ended_early_is_published_by_its_repeat(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    voucher = sales.offer()

    with monkeypatch.context() as patch:
        patch.setattr(place_order, "publish", failing(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            place_order.place_order(voucher.id, 7)
    for _ in range(3):
        result, _ = place_order.place_order(voucher.id, 7)
    assert len(plaza.queues.messages[ORDERS]) == 1
    lose_redis()
    plaza.queues.drain()
    assert queries.read_order(result.id, 7).status == SUCCESS


def test_the_recovery_reads_at_most_500_orders_in_one_run_of_its_script(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    voucher = sales.offer(stock=1_201)
    sale = redis_sales.find_sales([voucher.id])[voucher.id]
    for buyer_id in range(1, 1_202):
        redis.execute(
            "HSET", redis_keys.buyers_key(sale, buyer_id), buyer_id, f"pending:{buyer_id}"
        )
    sales.list_overdue(sale, *((buyer_id, buyer_id) for buyer_id in range(1, 1_202)))
    batch_sizes: list[int] = []
    find_overdue = redis_orders.find_overdue

    def count(
        sales_read: Sequence[SaleGeneration], resend_after_us: int, limit: int
    ) -> tuple[list[OrderEvent], list[SaleGeneration]]:
        result, more = find_overdue(sales_read, resend_after_us, limit)
        batch_sizes.append(len(result))
        return result, more

    monkeypatch.setattr(redis_orders, "find_overdue", count)
    recover_orders.recover_orders(decide_after_s=10**10)
    assert batch_sizes == [500, 500, 201]
    sent = sales.parse_events(plaza.queues.take(ORDERS))
    assert sorted(event.order_id for event in sent) == list(range(1, 1_202))


def test_an_order_that_is_too_old_is_decided_by_the_recovery(plaza: World) -> None:
    voucher = sales.offer(stock=1)
    placed = order(voucher.id, 7)
    late = plaza.queues.take(ORDERS)
    assert recover_orders.recover_orders(resend_after_s=0, decide_after_s=0) == 1
    sales.check(voucher.id)
    assert sales.counts(voucher.id) == (0, 0, 1)
    assert queries.read_order(placed.id, 7).status == SUCCESS
    for _ in range(2):
        persist.persist_orders(sales.parse_events(late))
        sales.check(voucher.id)
    assert sales.counts(voucher.id) == (0, 0, 1)
    assert sales.stock(voucher.id) == 0


def test_dead_lettered_orders_are_decided_by_stock(plaza: World) -> None:
    voucher = sales.offer(stock=3)
    placed = [order(voucher.id, buyer) for buyer in (1, 2)]
    plaza.queues.messages[ORDERS_DLQ] = plaza.queues.take(ORDERS)
    drain(plaza, voucher.id)
    assert [queries.read_order(m.id, b).status for m, b in zip(placed, (1, 2), strict=True)] == [
        SUCCESS,
        SUCCESS,
    ]
    assert sales.counts(voucher.id) == (1, 0, 2) == (sales.stock(voucher.id), 0, 2)


def test_a_dead_letter_of_a_stored_order_changes_nothing(plaza: World) -> None:
    voucher = sales.offer(stock=1)
    placed = order(voucher.id, 7)
    events = sales.parse_events(plaza.queues.take(ORDERS))
    persist.persist_orders(events)
    for _ in range(2):
        persist.decide_dead_letters(events)
        sales.check(voucher.id)
    assert queries.read_order(placed.id, 7).status == SUCCESS
    assert sales.counts(voucher.id) == (0, 0, 1)


def test_a_unit_is_returned_once_however_often_its_failure_is_acknowledged(plaza: World) -> None:
    voucher = sales.offer(stock=2)
    order(voucher.id, 7)
    mysql.write("UPDATE voucher SET stock = 0")
    plaza.queues.messages[ORDERS_DLQ] = plaza.queues.take(ORDERS) * 3
    drain(plaza, voucher.id)
    recover_orders.recover_orders(resend_after_s=0, decide_after_s=0)
    assert sales.counts(voucher.id) == (2, 0, 0)


def test_a_late_repeat_of_a_failed_order_does_not_change_the_buyers_second_order(
    plaza: World,
) -> None:
    voucher = sales.offer(stock=2)
    order(voucher.id, 7)
    late = plaza.queues.take(ORDERS)
    mysql.write("UPDATE voucher SET stock = 0")
    persist.persist_orders(sales.parse_events(late))
    mysql.write("UPDATE voucher SET stock = 2")
    second = order(voucher.id, 7)
    persist.persist_orders(sales.parse_events(late))  # acknowledges the failure again
    sales.check(voucher.id)
    assert queries.read_order(second.id, 7).status == PENDING
    drain(plaza, voucher.id)
    assert sales.counts(voucher.id) == (1, 0, 1)


def test_of_two_events_with_one_id_and_different_buyers_one_is_refused(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    voucher = sales.offer(stock=3)
    placed = order(voucher.id, 7)
    sale = redis_sales.find_sales([voucher.id])[voucher.id]
    redis_orders.reserve(sale, placed.id, 8)
    redis_pointers.write_pointer(8, placed.id, voucher.id)
    [first] = sales.parse_events(plaza.queues.take(ORDERS))
    second = OrderEvent(placed.id, voucher.id, 8, 1)
    third = OrderEvent(placed.id, voucher.id + 1, 7, 1)
    with pytest.raises(OrderMismatch):
        persist.persist_orders([second, third, first])
    assert '"orders_mismatched":2' in capsys.readouterr().out
    sales.check(voucher.id)
    assert sales.counts(voucher.id) == (2, 0, 1)
    assert queries.read_order(placed.id, 7).status == SUCCESS
    assert queries.read_order(placed.id, 8) == Order(placed.id, voucher.id, FAILED, "timed-out")
    for stray in (second, third):
        with pytest.raises(OrderMismatch):
            persist.decide_dead_letters([stray])


def test_of_two_new_events_with_one_id_the_lower_buyer_is_decided(plaza: World) -> None:
    voucher = sales.offer(stock=3)
    first, second = (OrderEvent(5, voucher.id, buyer, 1) for buyer in (7, 9))
    decided = persist.decide([first, second])
    assert ([row.buyer_id for row in decided.rows], decided.mismatched) == ([7], [second])


def test_a_dead_letter_that_was_decided_before_is_not_counted(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    voucher = sales.offer(stock=3)
    for _ in range(2):
        persist.decide_dead_letters([OrderEvent(5, voucher.id, 7, 1)])
    lines = read_log(capsys)
    counted = [line["dead_orders_decided"] for line in lines if "dead_orders_decided" in line]
    assert counted == [1, 0]


def test_a_reservation_with_the_id_of_a_decided_order_stays_in_the_outbox(plaza: World) -> None:
    stray = OrderEvent(5, 3, 9, 1)
    mysql_orders.spill(stray)
    mysql_orders.delete_spilled([OrderEvent(5, 3, 7, 1)])
    assert mysql_orders.read_spilled(None, 10) == [stray]


def test_the_recovery_sends_an_event_with_the_id_of_another_order_to_the_consumer(
    plaza: World,
) -> None:
    voucher = sales.offer(stock=3)
    placed = order(voucher.id, 7)
    drain(plaza, voucher.id)
    sale = redis_sales.find_sales([voucher.id])[voucher.id]
    redis_orders.reserve(sale, placed.id, 8)
    stray = OrderEvent(placed.id, voucher.id, 9, 1)
    mysql_orders.spill(stray)
    recover_orders.recover_orders(resend_after_s=0, decide_after_s=0)
    sent = sales.parse_events(plaza.queues.take(ORDERS))
    assert {event.buyer_id for event in sent} == {9, 8}
    for event in sent:
        with pytest.raises(OrderMismatch):
            persist.persist_orders([event])
    assert sales.counts(voucher.id) == (2, 0, 1)
    assert mysql_orders.read_spilled(None, 10) == []


def test_a_batch_with_duplicates_of_two_sales_is_stored_once(plaza: World) -> None:
    item, two = sales.offer(stock=3), sales.offer(stock=1)
    for buyer in (1, 2, 3):
        order(item.id, buyer)
    order(two.id, 1)
    bodies = plaza.queues.take(ORDERS)
    persist.persist_orders(sales.parse_events(bodies + bodies[::-1]))
    persist.persist_orders(sales.parse_events(bodies[:2]))
    for voucher, sold in ((item, 3), (two, 1)):
        sales.check(voucher.id)
        assert sales.counts(voucher.id) == (0, 0, sold)
        assert len(sales.rows(voucher.id)) == sold


def test_decided_orders_resume_with_the_acknowledgement(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given Redis down after a batch was decided, one of its orders cancelled since, and a stray
    event with the id of another order."""
    voucher = sales.offer(stock=2)
    kept, cancelled = order(voucher.id, 7), order(voucher.id, 8)
    events = sales.parse_events(plaza.queues.take(ORDERS))
    stray = OrderEvent(kept.id, voucher.id, 9, 1)
    with monkeypatch.context() as outage:
        outage.setattr(redis_orders, "acknowledge", raise_redis_down)
        with pytest.raises(RedisDown) as interrupted:
            persist.persist_orders([*events, stray])
    assert interrupted.value.step == "acknowledge"
    assert len(sales.rows(voucher.id)) == 2
    cancel_order.cancel_order(cancelled.id, 8)
    monkeypatch.setattr(mysql_vouchers, "lock", None)  # no row is locked, no order decided
    with pytest.raises(OrderMismatch):
        persist.acknowledge_decided([*events, stray])
    persist.acknowledge_decided(events)
    sales.check(voucher.id)
    assert sales.counts(voucher.id) == (1, 0, 1)


def test_orders_that_a_restore_lost_are_decided_when_they_resume(plaza: World) -> None:
    voucher = sales.offer(stock=2)
    for buyer in (7, 8):
        order(voucher.id, buyer)
    events = sales.parse_events(plaza.queues.take(ORDERS))
    persist.persist_orders(events[:1])
    persist.acknowledge_decided(events)
    sales.check(voucher.id)
    assert sales.counts(voucher.id) == (0, 0, 2)


def test_the_number_of_statements_of_a_batch_is_constant(plaza: World) -> None:
    def count(size: int) -> int:
        voucher = sales.offer(stock=size)
        for buyer in range(1, size + 1):
            place_order.place_order(voucher.id, buyer)
        events = sales.parse_events(plaza.queues.take(ORDERS))
        before = questions()
        persist.persist_orders(events)
        return questions() - before

    def questions() -> int:
        return int(mysql.fetch_all("SHOW SESSION STATUS LIKE 'Questions'")[0][1])

    assert count(2) == count(200) <= 4 + 2 + 2 + 1  # two append the events


def test_an_event_of_a_missing_voucher_fails_alone(plaza: World) -> None:
    voucher = sales.offer()
    placed = order(voucher.id, 7)
    stray = OrderEvent(placed.id + 1, 31, 7, 1)
    persist.persist_orders([stray, *sales.parse_events(plaza.queues.take(ORDERS))])
    assert queries.read_order(stray.order_id, 7).reason == "sold-out"
    assert queries.read_order(placed.id, 7).status == SUCCESS


def test_the_constraints_of_mysql_prevent_overselling(plaza: World) -> None:
    voucher = sales.offer(stock=1)
    with pytest.raises(Exception, match=r"never_oversold|3819"):
        mysql.write("UPDATE voucher SET stock = stock - 2")
    mysql.write(
        "INSERT INTO voucher_order (order_id, voucher_id, buyer_id, holder_id)"
        " VALUES (1, %s, 7, 7)",
        (voucher.id,),
    )
    with pytest.raises(Exception, match="Duplicate"):
        mysql.write(
            "INSERT INTO voucher_order (order_id, voucher_id, buyer_id, holder_id)"
            " VALUES (2, %s, 7, 7)",
            (voucher.id,),
        )
    with pytest.raises(Exception, match=r"success_or_failure|3819"):
        mysql.write(
            "INSERT INTO voucher_order (order_id, voucher_id, buyer_id) VALUES (3, %s, 7)",
            (voucher.id,),
        )


# ---------------------------------------------------------------- Redis lost its data


def lose_redis() -> None:
    redis.execute("FLUSHALL")


def test_stock_and_buyers_are_loaded_from_mysql(plaza: World) -> None:
    voucher = sales.offer(stock=5)
    for buyer in (1, 2):
        order(voucher.id, buyer)
    drain(plaza, voucher.id)
    lose_redis()
    order(voucher.id, 3)
    assert sales.counts(voucher.id) == (2, 1, 2)
    result, created = place_order.place_order(voucher.id, 1)
    assert (result.status, created) == (SUCCESS, False)
    state = sales.read_counts(voucher.id)
    assert state is not None
    assert state.generation == 2


def test_queued_orders_take_precedence_over_new_ones(plaza: World) -> None:
    voucher = sales.offer(stock=1)
    first = order(voucher.id, 1)
    lose_redis()
    for _ in range(2):
        with pytest.raises(NotReady):
            place_order.place_order(voucher.id, 2)
    drain(plaza, voucher.id)
    clear_caches()  # 2 s later
    with pytest.raises(SoldOut):
        place_order.place_order(voucher.id, 2)
    assert queries.read_order(first.id, 1).status == SUCCESS
    assert sales.counts(voucher.id) == (0, 0, 1)


def test_a_backlog_that_was_read_before_the_loss_opens_no_sale(plaza: World) -> None:
    """Given a process that read an empty queue less than 2 s before."""
    voucher = sales.offer(stock=1)
    assert backlog.count_unfinished() == 0
    first = order(voucher.id, 1)
    lose_redis()
    for _ in range(2):
        with pytest.raises(NotReady):
            place_order.place_order(voucher.id, 2)
    drain(plaza, voucher.id)
    assert queries.read_order(first.id, 1).status == SUCCESS


def test_a_queue_that_does_not_drain_delays_a_sale_for_30_s_and_mysql_decides(
    plaza: World,
) -> None:
    voucher = sales.offer(stock=1)
    first = order(voucher.id, 1)
    old = plaza.queues.take(ORDERS)
    plaza.queues.messages[ORDERS] = ["a message of another sale"]
    lose_redis()
    with pytest.raises(NotReady):
        place_order.place_order(voucher.id, 2)
    redis.execute("HSET", redis_keys.state_key(voucher.id), "drain_until_us", sales.now_us() - 1)
    second = order(voucher.id, 2)
    plaza.queues.messages[ORDERS].remove("a message of another sale")
    persist.persist_orders(sales.parse_events(old))  # stored before the second order
    sales.check(voucher.id)
    assert sales.counts(voucher.id) == (-1, 1, 1)
    drain(plaza, voucher.id)
    assert sales.counts(voucher.id) == (0, 0, 1)
    assert queries.read_order(first.id, 1).status == SUCCESS
    assert queries.read_order(second.id, 2).reason == "sold-out"


def test_a_buyer_with_orders_in_two_generations_gets_one_success(plaza: World) -> None:
    voucher = sales.offer(stock=5)
    first = order(voucher.id, 1)
    old = plaza.queues.take(ORDERS)
    lose_redis()
    second = order(voucher.id, 1)
    persist.persist_orders(sales.parse_events(old))
    sales.check(voucher.id)
    assert sales.counts(voucher.id) == (4, 0, 1), "the success has the unit of the second order"
    assert queries.read_order(second.id, 1).status == PENDING
    assert sales.list_orders(1, None, 10)[0][0] == second, "its pointer says that it is queued"
    drain(plaza, voucher.id)
    assert sales.counts(voucher.id) == (4, 0, 1)
    assert queries.read_order(first.id, 1).status == SUCCESS
    assert queries.read_order(second.id, 1).reason == "already-bought"
    assert place_order.place_order(voucher.id, 1)[0].id == first.id


def test_an_order_that_sqs_refused_survives_the_loss_of_redis_and_takes_precedence(
    plaza: World,
) -> None:
    voucher = sales.offer(stock=1)
    plaza.queues.away = True
    placed = order(voucher.id, 1)
    plaza.queues.away = False
    clear_caches()  # otherwise SQS is not polled for 2 s
    lose_redis()
    with pytest.raises(NotReady):
        queries.read_order(placed.id, 1)
    with pytest.raises(SoldOut):
        place_order.place_order(voucher.id, 2)
    assert queries.read_order(placed.id, 1).status == SUCCESS
    assert sales.counts(voucher.id) == (0, 0, 1)


def test_a_queued_order_is_never_missing_after_redis_lost_its_data(plaza: World) -> None:
    voucher = sales.offer(stock=3)
    first, second = order(voucher.id, 1), order(voucher.id, 2)
    lose_redis()
    with pytest.raises(NotReady):
        queries.read_order(first.id, 1)
    redis_pointers.write_pointer(2, second.id, voucher.id)  # on a node that lost no data
    assert queries.read_order(second.id, 2).status == PENDING
    plaza.queues.drain()
    assert queries.read_order(first.id, 1).status == SUCCESS
    assert queries.read_order(second.id, 2).status == SUCCESS


def copy_sales() -> None:
    """Copy the keys of sales in Redis, for ``restore_sales``."""
    for key in find_keys("*:voucher:*"):
        redis.execute("COPY", key, f"older:{key}")


def restore_sales() -> None:
    """Restore the copies, as after a failover to a replica that lacks the last commands."""
    delete_keys(key for key in find_keys("*:voucher:*") if not key.startswith("older:"))
    for key in find_keys("older:*"):
        redis.execute("RENAME", key, key.removeprefix("older:"))


def test_the_recovery_reconfirms_orders_that_a_node_with_older_data_lacks(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recover_orders, "_BATCH", 2)
    voucher = sales.offer(stock=9)
    order(voucher.id, 1)
    copy_sales()
    placed = [order(voucher.id, buyer) for buyer in range(2, 7)]
    drain(plaza, voucher.id)
    restore_sales()
    assert sales.counts(voucher.id) == (8, 1, 0)

    recover_orders.recover_orders(0)
    drain(plaza, voucher.id)
    assert sales.counts(voucher.id) == (3, 0, 6)
    assert sales.stock(voucher.id) == 3
    assert place_order.place_order(voucher.id, 2) == (placed[0]._replace(status=SUCCESS), False)


def test_a_sale_without_drift_is_not_reconfirmed(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    voucher = sales.offer(stock=3)
    order(voucher.id, 1)
    order(voucher.id, 2)
    drain(plaza, voucher.id)
    order(voucher.id, 3)
    recover_orders.recover_orders(0)
    assert "orders_reconfirmed" not in capsys.readouterr().out


def test_scripts_refuse_a_stale_generation(plaza: World) -> None:
    voucher = sales.offer(stock=5)
    old = redis_sales.find_sales([voucher.id])[voucher.id]
    lose_redis()
    order(voucher.id, 1)
    assert redis_orders.reserve(old, 1, 9) == ("STALE_GENERATION", "", True)
    assert redis_load.open_sale(old, drained=True) == "STALE_GENERATION"
    assert not redis_orders.load_orders(old, [(1, 9)], None)
    assert not redis_orders.load_orders(old, [(1, 9)], CANCELLED)
    assert redis_orders.find_overdue([old], 0, 10) == ([], [])
    sales.check(voucher.id)
    assert sales.counts(voucher.id) == (4, 1, 0)


def test_a_load_does_not_overwrite_a_live_state(plaza: World) -> None:
    voucher = sales.offer(stock=5)
    order(voucher.id, 1)
    progress = redis_load.begin_loading(SaleGeneration(voucher.id, 99, 5), voucher, 0)
    assert (progress.sale.generation, progress.phase) == (1, "live")
    assert sales.counts(voucher.id) == (4, 1, 0)


def test_the_recovery_continues_a_load_that_ended_early(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from plaza.commerce.flash_sales import load_sale

    voucher = sales.offer(stock=200)
    for buyer in range(1, 101):
        place_order.place_order(voucher.id, buyer)
    drain(plaza, voucher.id)
    lose_redis()
    monkeypatch.setattr(load_sale, "_PAGE", 30)
    monkeypatch.setattr(load_sale, "MAX_RUN_S", 0.0)
    for _ in range(2):
        with pytest.raises(NotReady):
            place_order.place_order(voucher.id, 500)
    sales.check(voucher.id)
    state = sales.read_counts(voucher.id)
    assert state is not None
    assert (state.live, state.sold) == (False, 60)
    assert place_order.place_order(voucher.id, 1)[0].status == SUCCESS  # loaded already
    monkeypatch.setattr(load_sale, "MAX_RUN_S", 4.0)
    recover_orders.recover_orders()
    sales.check(voucher.id)
    state = sales.read_counts(voucher.id)
    assert state is not None
    assert (state.live, state.sold, state.generation) == (True, 100, 2)


def test_orders_that_are_stored_during_a_load_are_loaded(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    voucher = sales.offer(stock=10)
    for buyer in (1, 2, 3):
        order(voucher.id, buyer)
    bodies = plaza.queues.take(ORDERS)
    persist.persist_orders(sales.parse_events(bodies[:1]))
    lose_redis()
    load_orders = redis_orders.load_orders

    def load_during_other_writes(
        sale: SaleGeneration, orders: list[tuple[int, int]], reason: str | None
    ) -> bool:
        persist.persist_orders(sales.parse_events(bodies[1:2]))
        completed = load_orders(sale, orders, reason)
        persist.persist_orders(sales.parse_events(bodies[2:]))
        return completed

    monkeypatch.setattr(redis_orders, "load_orders", load_during_other_writes)
    order(voucher.id, 4)
    assert sales.counts(voucher.id) == (6, 1, 3)


# ---------------------------------------------------------------- servers are unavailable


def test_while_redis_is_down_orders_fail_and_decided_orders_are_read_from_mysql(
    plaza: World, redis_away: Away
) -> None:
    voucher = sales.offer()
    placed = order(voucher.id, 7)
    with redis_away():
        for call in (
            lambda: place_order.place_order(voucher.id, 8),
            lambda: queries.read_order(placed.id, 7),
            lambda: sales.list_orders(7, None, 10),
            lambda: persist.persist_orders(sales.parse_events(plaza.queues.messages[ORDERS])),
        ):
            connections.REDIS.breaker.close()
            with pytest.raises(RedisDown):
                call()
        # The order is stored, so it can be read from MySQL.
        connections.REDIS.breaker.close()
        assert queries.read_order(placed.id, 7).status == SUCCESS
        [offer], _ = queries.list_vouchers(sales.SHOP, None, 10)
        assert (offer.left, offer.exact) == (2, False)


def test_while_mysql_is_down_a_loaded_sale_continues(plaza: World, mysql_away: Away) -> None:
    voucher = sales.offer()
    with mysql_away():
        placed = order(voucher.id, 7)
        assert queries.read_order(placed.id, 7).status == PENDING
        with pytest.raises(MysqlDown):
            persist.persist_orders(sales.parse_events(plaza.queues.messages[ORDERS]))
    drain(plaza, voucher.id)
    assert queries.read_order(placed.id, 7).status == SUCCESS


def test_a_repeat_returns_the_order_after_writing_its_pointer_failed(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    voucher = sales.offer()

    with monkeypatch.context() as patch:
        patch.setattr(
            redis_pointers, "write_pointer", failing(RedisDown("down, simulated by a test"))
        )
        with pytest.raises(RedisDown):
            place_order.place_order(voucher.id, 7)
    sales.check(voucher.id)
    result, created = place_order.place_order(voucher.id, 7)
    assert not created
    assert queries.read_order(result.id, 7) == result
    drain(plaza, voucher.id)  # the event was sent before the failure
    assert queries.read_order(result.id, 7).status == SUCCESS


def test_a_stored_batch_that_was_not_acknowledged_is_acknowledged_by_its_repeat(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    voucher = sales.offer()
    placed = order(voucher.id, 7)
    events = sales.parse_events(plaza.queues.take(ORDERS))
    mysql.run_in_transaction(lambda cursor: persist._write(cursor, events))
    assert queries.read_order(placed.id, 7).status == PENDING
    persist.persist_orders(events)
    sales.check(voucher.id)
    assert queries.read_order(placed.id, 7).status == SUCCESS


# ---------------------------------------------------------------- a shop was deleted


def delete_shop() -> None:
    mysql.write("UPDATE shop SET deleted_at = UTC_TIMESTAMP(6) WHERE id = %s", (sales.SHOP,))


def test_vouchers_of_a_deleted_shop_are_withdrawn_even_if_cached(plaza: World) -> None:
    voucher = sales.offer(stock=3)
    placed = order(voucher.id, 7)
    delete_shop()
    withdraw_vouchers.withdraw_vouchers(sales.SHOP)
    for _ in range(2):
        with pytest.raises(VoucherWithdrawn):
            place_order.place_order(voucher.id, 8)
    with pytest.raises(Gone):
        queries.list_vouchers(sales.SHOP, None, 10)
    with pytest.raises(VoucherWithdrawn):
        sales.offer(stock=3)
    assert place_order.place_order(voucher.id, 7) == (placed, False)
    drain(plaza, voucher.id)
    withdrawn = Order(placed.id, voucher.id, FAILED, "withdrawn")
    assert queries.read_order(placed.id, 7) == withdrawn
    assert sales.counts(voucher.id) == (3, 0, 0)
    lose_redis()
    for buyer in (7, 8):
        with pytest.raises(VoucherWithdrawn):
            place_order.place_order(voucher.id, buyer)
    close(voucher.id)
    assert finalize_vouchers.finalize_vouchers() == 1


def test_a_success_from_before_the_shop_was_deleted_remains(plaza: World) -> None:
    voucher = sales.offer(stock=3)
    placed = order(voucher.id, 7)
    drain(plaza, voucher.id)
    delete_shop()
    withdraw_vouchers.withdraw_vouchers(sales.SHOP)
    bought = placed._replace(status=SUCCESS)
    assert place_order.place_order(voucher.id, 7) == (bought, False)
    lose_redis()
    assert place_order.place_order(voucher.id, 7) == (bought, False)
    assert queries.read_order(placed.id, 7) == bought


def test_the_recovery_withdraws_missed_vouchers_and_a_restored_shop_sells_again(
    plaza: World,
) -> None:
    voucher = sales.offer(stock=3)
    order(voucher.id, 7)
    drain(plaza, voucher.id)
    delete_shop()
    recover_orders.recover_orders()
    with pytest.raises(VoucherWithdrawn):
        place_order.place_order(voucher.id, 8)
    recover_orders.recover_orders()
    mysql.write("UPDATE shop SET deleted_at = NULL WHERE id = %s", (sales.SHOP,))
    recover_orders.recover_orders()
    clear_caches()  # 1 s later
    order(voucher.id, 8)
    drain(plaza, voucher.id)
    assert sales.counts(voucher.id) == (1, 0, 2)


# ---------------------------------------------------------------- withdrawn by an admin


def test_a_withdrawn_voucher_takes_no_orders_and_decides_the_pending_ones(plaza: World) -> None:
    voucher = sales.offer(stock=3)
    bought = order(voucher.id, 7)
    drain(plaza, voucher.id)
    pending = order(voucher.id, 8)
    withdraw_vouchers.withdraw_voucher(voucher.id, sales.ADMIN)
    for _ in range(2):
        with pytest.raises(VoucherWithdrawn):
            place_order.place_order(voucher.id, 9)
        clear_caches()
    drain(plaza, voucher.id)
    assert queries.read_order(pending.id, 8) == Order(pending.id, voucher.id, FAILED, "withdrawn")
    assert queries.read_order(bought.id, 7) == bought._replace(status=SUCCESS)
    assert (sales.holders(voucher.id), sales.stock(voucher.id)) == ([7], 2)
    assert queries.list_vouchers(sales.SHOP, None, 10) == ([], None)
    with pytest.raises(VoucherWithdrawn):
        queries.read_voucher(voucher.id)
    close(voucher.id)
    assert finalize_vouchers.finalize_vouchers() == 1


def test_a_repeated_withdrawal_is_refused_and_repairs_redis(plaza: World) -> None:
    """Given a first request that ended after its commit."""
    voucher = sales.offer(stock=3)
    assert queries.list_vouchers(sales.SHOP, None, 10)[0]
    mysql_vouchers.mark_withdrawn(voucher.id, sales.ADMIN)
    with pytest.raises(VoucherWithdrawn):
        withdraw_vouchers.withdraw_voucher(voucher.id, sales.ADMIN)
    with pytest.raises(VoucherWithdrawn):
        place_order.place_order(voucher.id, 9)
    with pytest.raises(VoucherMissing):
        withdraw_vouchers.withdraw_voucher(4711, sales.ADMIN)


def test_the_recovery_withdraws_what_a_withdrawal_left_in_redis(plaza: World) -> None:
    """Given an order that is reserved after the commit and before Redis has the withdrawal."""
    voucher = sales.offer(stock=3)
    mysql_vouchers.mark_withdrawn(voucher.id, sales.ADMIN)
    late = order(voucher.id, 7)
    recover_orders.recover_orders()
    with pytest.raises(VoucherWithdrawn):
        place_order.place_order(voucher.id, 8)
    drain(plaza, voucher.id)
    assert queries.read_order(late.id, 7).reason == "withdrawn"
    assert sales.counts(voucher.id) == (3, 0, 0)


def test_a_voucher_is_read_with_its_units_left(plaza: World) -> None:
    voucher = sales.offer(stock=3)
    order(voucher.id, 7)
    result = queries.read_voucher(voucher.id)
    assert (result.voucher.terms.title, result.left, result.exact) == ("Dinner", 2, True)
    with pytest.raises(VoucherMissing):
        queries.read_voucher(4711)


# ---------------------------------------------------------------- finalizing


def close(voucher_id: int, seconds_ago: int = 120) -> None:
    """Move the end of a sale into the past."""
    at = sales.now_us() - seconds_ago * 1_000_000
    mysql.write(
        "UPDATE voucher SET opens_at = FROM_UNIXTIME(1), closes_at = FROM_UNIXTIME(%s)"
        " WHERE id = %s",
        (at // 1_000_000, voucher_id),
    )
    state = redis_keys.state_key(voucher_id)
    redis.execute("HSET", state, "closes_us", at)
    clear_caches()


def test_a_sale_that_is_over_is_finalized_and_expires_from_redis(plaza: World) -> None:
    voucher = sales.offer(stock=3)
    placed = order(voucher.id, 7)
    drain(plaza, voucher.id)
    assert finalize_vouchers.finalize_vouchers() == 0
    close(voucher.id)
    assert finalize_vouchers.finalize_vouchers() == 1
    assert finalize_vouchers.finalize_vouchers() == 0
    keys = find_keys("*:voucher:*")
    assert keys
    assert all(redis.execute("TTL", key) > 0 for key in keys)
    redis.execute("DEL", *keys)
    assert place_order.place_order(voucher.id, 7) == (placed._replace(status=SUCCESS), False)
    with pytest.raises(NotOpen):
        place_order.place_order(voucher.id, 8)
    [offer], _ = queries.list_vouchers(sales.SHOP, None, 10)
    assert (offer.left, offer.exact) == (2, True)


def test_a_sale_with_pending_or_queued_orders_is_not_finalized(plaza: World) -> None:
    voucher = sales.offer(stock=3)
    order(voucher.id, 7)
    close(voucher.id)
    assert finalize_vouchers.finalize_vouchers() == 0
    plaza.queues.drain()
    plaza.queues.messages[ORDERS] = ["a message of another sale"]
    clear_caches()
    assert finalize_vouchers.finalize_vouchers() == 0
    plaza.queues.messages.clear()
    clear_caches()
    assert finalize_vouchers.finalize_vouchers() == 1


def test_a_queue_that_never_drains_delays_finalizing_for_an_hour_at_most(
    plaza: World,
) -> None:
    voucher = sales.offer(stock=3)
    plaza.queues.messages[ORDERS] = ["a message of another sale"]
    close(voucher.id, 3700)
    assert finalize_vouchers.finalize_vouchers() == 1


def test_drift_is_reported_and_the_state_stays(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    voucher = sales.offer(stock=3)
    mysql.write("UPDATE voucher SET stock = 2")
    close(voucher.id)
    assert finalize_vouchers.finalize_vouchers() == 0
    assert '"vouchers_with_drift":1' in capsys.readouterr().out
    assert redis.execute("TTL", redis_keys.state_key(voucher.id)) == -1


# ---------------------------------------------------------------- lists, ids and polling


def test_orders_are_listed_page_by_page_pending_and_decided(plaza: World) -> None:
    vouchers = [sales.offer(stock=2) for _ in range(5)]
    placed = [order(voucher.id, 7) for voucher in vouchers[:3]]
    plaza.queues.drain()
    placed += [order(voucher.id, 7) for voucher in vouchers[3:]]
    listed, before = [], None
    while True:
        page, before = sales.list_orders(7, before, 2)
        listed += page
        if before is None:
            break
    assert [item.id for item in listed] == [item.id for item in placed[::-1]]
    assert [item.status for item in listed] == [PENDING] * 2 + [SUCCESS] * 3
    assert sales.list_orders(8, None, 2) == ([], None)


def test_the_vouchers_of_a_shop_are_listed_with_their_remaining_units(plaza: World) -> None:
    vouchers = [sales.offer(stock=n) for n in (1, 2, 3)]
    order(vouchers[2].id, 7)
    page, last = queries.list_vouchers(sales.SHOP, None, 2)
    assert [(offer.voucher.id, offer.left, offer.exact) for offer in page] == [
        (vouchers[2].id, 2, True),
        (vouchers[1].id, 2, True),
    ]
    page, last = queries.list_vouchers(sales.SHOP, last, 2)
    assert [offer.voucher.id for offer in page] == [vouchers[0].id]
    assert last is None
    with pytest.raises(ShopMissing):
        queries.list_vouchers(6, None, 2)


def test_the_poll_interval_grows_with_the_backlog_which_is_read_once_in_two_seconds(
    plaza: World, set_up: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from plaza.infra.queues import sqs
    from plaza.infra.queues.sqs import Depth

    set_up(orders_per_s=100)
    measured: list[object] = []
    depth = Depth(400, 40, 10)
    monkeypatch.setattr(sqs, "measure", lambda queue: record_call(measured, queue, depth))
    assert [backlog.poll_after_s() for _ in range(10)] == [5] * 10
    assert len(measured) == 1
    clear_caches()
    monkeypatch.setattr(sqs, "measure", lambda queue: Depth(10_000_000, 0, 0))
    assert backlog.poll_after_s() == 60


def test_buyers_are_spread_over_many_small_keys(plaza: World, set_up: Callable[..., None]) -> None:
    set_up(orders_per_s=100_000)
    voucher = sales.offer(stock=3000)
    for buyer in range(1, 3001):
        place_order.place_order(voucher.id, buyer)
    sales.check(voucher.id)
    sizes = [redis.execute("HLEN", key) for key in find_keys("*:buyers:*")]
    assert sum(sizes) == 3000
    assert len(sizes) == 47
    assert max(sizes) < 128

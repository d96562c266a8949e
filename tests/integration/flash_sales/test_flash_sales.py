"""A sale on real servers: reserved, saved, told; and what can go wrong on the way."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

import pytest

from plaza.flash_sales import (
    FAILED,
    PENDING,
    SUCCESS,
    Order,
    OrderEvent,
    backlog,
    finalize_vouchers,
    mysql_orders,
    persist,
    place_order,
    queries,
    recover_orders,
    redis_store,
    withdraw_vouchers,
)
from plaza.flash_sales.model import (
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
from plaza.flash_sales.queues import ORDERS, ORDERS_DLQ
from plaza.infra import mysql, redis
from plaza.infra.errors import Gone
from plaza.infra.mysql import MysqlDown
from plaza.infra.process import clear_caches
from plaza.infra.queues import QueueDown
from plaza.infra.redis import RedisDown
from plaza.shops.model import ShopMissing
from tests.integration.conftest import Away
from tests.support import sales
from tests.support.call_log import record_call
from tests.support.keyspace import delete_keys, find_keys, own_client
from tests.support.plaza import World


def order(voucher_id: int, buyer_id: int) -> Order:
    """An order that this made, the invariant holding before and after."""
    found, made = place_order.place_order(voucher_id, buyer_id)
    assert made
    sales.check(voucher_id)
    return found


def drain(plaza: World, voucher_id: int) -> None:
    plaza.queues.drain()
    sales.check(voucher_id)


# ---------------------------------------------------------------- ordering


def test_an_order_is_pending_until_it_is_saved_and_then_a_success(plaza: World) -> None:
    voucher = sales.offer(stock=3)
    made = order(voucher.id, 7)
    assert made.status == PENDING
    assert sales.counts(voucher.id) == (2, 1, 0)
    assert queries.read_order(made.id, 7) == made
    assert queries.list_orders(7, None, 10) == ([made], None)
    drain(plaza, voucher.id)
    assert sales.counts(voucher.id) == (2, 0, 1)
    assert sales.stock(voucher.id) == 2
    assert queries.read_order(made.id, 7) == made._replace(status=SUCCESS)
    assert queries.list_orders(7, None, 10) == ([made._replace(status=SUCCESS)], None)
    redis.execute("FLUSHALL")
    assert queries.read_order(made.id, 7) == made._replace(status=SUCCESS)


def test_a_repeat_gets_the_same_order_pending_or_not_and_also_when_all_are_sold(
    plaza: World,
) -> None:
    voucher = sales.offer(stock=1)
    made = order(voucher.id, 7)
    assert place_order.place_order(voucher.id, 7) == (made, False)
    with pytest.raises(SoldOut):
        place_order.place_order(voucher.id, 8)
    assert place_order.place_order(voucher.id, 7) == (made, False)  # refusals are remembered by now
    drain(plaza, voucher.id)
    assert place_order.place_order(voucher.id, 7) == (made._replace(status=SUCCESS), False)
    assert plaza.queues.messages[ORDERS] == []


def test_somebody_elses_order_is_not_there(plaza: World) -> None:
    voucher = sales.offer()
    made = order(voucher.id, 7)
    with pytest.raises(NotReady):  # it may be theirs, in a pointer that Redis lost
        queries.read_order(made.id, 8)
    drain(plaza, voucher.id)
    with pytest.raises(OrderMissing):
        queries.read_order(made.id, 8)
    day_before = made.id - (MAX_PENDING_S + 60 << 32)
    day_after = made.id + (MAX_PENDING_S << 32)
    for stray in (day_before, day_after):
        with pytest.raises(OrderMissing):
            queries.read_order(stray, 7)


def test_a_sale_opens_and_closes_by_the_clock_of_redis(plaza: World) -> None:
    early = sales.offer(opens_in_s=3600, closes_in_s=7200)
    for _ in range(2):
        with pytest.raises(NotOpen, match="not begun"):
            place_order.place_order(early.id, 7)
    voucher = sales.offer(stock=3)
    made = order(voucher.id, 7)
    redis.execute("HSET", redis_store.state_key(voucher.id), "closes_us", sales.now_us() - 1)
    for _ in range(2):
        with pytest.raises(NotOpen, match="over"):
            place_order.place_order(voucher.id, 8)
    assert place_order.place_order(voucher.id, 7) == (made, False)


def test_a_voucher_that_is_not_there_is_missing(plaza: World) -> None:
    for _ in range(2):
        with pytest.raises(VoucherMissing):
            place_order.place_order(31, 7)


def test_only_as_many_are_let_in_as_can_be_saved(plaza: World, set_up: Callable[..., None]) -> None:
    set_up(orders_per_s=2)
    voucher = sales.offer(stock=100)
    buyers = iter(range(1, 50))
    with pytest.raises(OrderRateExceeded) as refused:
        deque((place_order.place_order(voucher.id, buyer) for buyer in buyers), maxlen=0)
    assert refused.value.retry_after_s >= 1
    sales.check(voucher.id)
    assert 2 <= sales.counts(voucher.id)[1] <= 4
    state = redis_store.state_key(voucher.id)
    redis.execute("HINCRBY", state, "full_us", -10_000_000)  # as if ten seconds had passed
    order(voucher.id, 1000)


def test_no_more_may_be_pending_than_settings_say(
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


def test_sold_out_is_said_before_crowded(plaza: World, set_up: Callable[..., None]) -> None:
    set_up(orders_per_s=1)
    voucher = sales.offer(stock=1)
    order(voucher.id, 1)
    with pytest.raises(SoldOut):
        place_order.place_order(voucher.id, 2)


def test_an_id_that_was_not_used_is_used_for_the_next(plaza: World) -> None:
    voucher = sales.offer(stock=2)
    first = order(voucher.id, 1)
    for _ in range(20):
        place_order.place_order(voucher.id, 1)
    assert 0 < order(voucher.id, 2).id - first.id < 2**33


def test_3000_repeats_of_one_buyer_at_once_are_one_order(plaza: World) -> None:
    voucher = sales.offer(stock=10)
    made = order(voucher.id, 99)
    life = redis_store.find_sales([voucher.id])[voucher.id]
    keys = (
        redis_store.state_key(voucher.id),
        redis_store.buyers_key(life, 7),
        redis_store.recovery_key(life),
    )
    source = redis_store.RESERVE.source
    answers: list[str] = []

    def click(first: int) -> None:
        with own_client() as own:
            for n in range(300):
                args = (life.generation, made.id + first * 1000 + n + 1, 7, 10_000, 10_000, 10_000)
                answers.append(own.eval(source, 3, *keys, *args)[0])

    threads = [threading.Thread(target=click, args=(n,)) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == ["EXISTS"] * 2999 + ["RESERVED"]
    sales.check(voucher.id)
    assert sales.counts(voucher.id) == (8, 2, 0)


# ---------------------------------------------------------------- the queue, lost and doubled


def test_an_order_that_sqs_refused_is_stored_and_decided_by_the_recovery(plaza: World) -> None:
    voucher = sales.offer()
    plaza.queues.away = True
    made = order(voucher.id, 7)
    assert made.status == PENDING
    [stored] = mysql_orders.read_outbox(None, 10)
    assert stored.identity == (made.id, voucher.id, 7)
    with pytest.raises(QueueDown):  # after it decided what was stored
        recover_orders.recover_orders()
    sales.check(voucher.id)
    assert queries.read_order(made.id, 7).status == SUCCESS
    assert mysql_orders.read_outbox(None, 10) == []
    plaza.queues.away = False
    assert recover_orders.recover_orders(resend_after_s=0) == 0


def test_an_order_that_neither_sqs_nor_mysql_took_is_not_answered_until_one_does(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    voucher = sales.offer()

    def down(*_: object) -> None:
        raise MysqlDown("away (a test says so)")

    plaza.queues.away = True
    with monkeypatch.context() as patch:
        patch.setattr(mysql_orders, "add_to_outbox", down)
        for _ in range(2):
            with pytest.raises(MysqlDown):
                place_order.place_order(voucher.id, 7)
    plaza.queues.away = False
    found, made = place_order.place_order(voucher.id, 7)
    assert not made
    lose_redis()
    drain(plaza, voucher.id)
    assert queries.read_order(found.id, 7).status == SUCCESS


def test_an_order_whose_first_publisher_died_is_published_by_its_repeat(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    voucher = sales.offer()

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(place_order, "publish", die)
        with pytest.raises(KeyboardInterrupt):
            place_order.place_order(voucher.id, 7)
    for _ in range(3):
        found, _ = place_order.place_order(voucher.id, 7)
    assert len(plaza.queues.messages[ORDERS]) == 1
    lose_redis()
    plaza.queues.drain()
    assert queries.read_order(found.id, 7).status == SUCCESS


def test_the_recovery_names_at_most_500_orders_in_one_run_of_its_script(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    voucher = sales.offer(stock=1_201)
    life = redis_store.find_sales([voucher.id])[voucher.id]
    orders = [f"{order_id}:{order_id}" for order_id in range(1, 1_202)]
    redis.execute("ZADD", redis_store.recovery_key(life), *(p for o in orders for p in (1, o)))
    named: list[int] = []
    recover = redis_store.find_overdue

    def count(lives: Sequence[SaleGeneration], grace_us: int, limit: int) -> list[OrderEvent]:
        found = recover(lives, grace_us, limit)
        named.append(len(found))
        return found

    monkeypatch.setattr(redis_store, "find_overdue", count)
    recover_orders.recover_orders(decide_after_s=10**10)
    assert named == [500, 500, 201]
    sent = sales.parse_events(plaza.queues.take(ORDERS))
    assert sorted(fact.order_id for fact in sent) == list(range(1, 1_202))


def test_an_order_that_is_too_old_is_decided_by_the_recovery(plaza: World) -> None:
    voucher = sales.offer(stock=1)
    made = order(voucher.id, 7)
    late = plaza.queues.take(ORDERS)
    assert recover_orders.recover_orders(resend_after_s=0, decide_after_s=0) == 1
    sales.check(voucher.id)
    assert sales.counts(voucher.id) == (0, 0, 1)
    assert queries.read_order(made.id, 7).status == SUCCESS
    for _ in range(2):
        persist.persist_orders(sales.parse_events(late))
        sales.check(voucher.id)
    assert sales.counts(voucher.id) == (0, 0, 1)
    assert sales.stock(voucher.id) == 0


def test_orders_that_five_tries_did_not_save_are_decided_by_stock(plaza: World) -> None:
    voucher = sales.offer(stock=3)
    made = [order(voucher.id, buyer) for buyer in (1, 2)]
    plaza.queues.messages[ORDERS_DLQ] = plaza.queues.take(ORDERS)
    drain(plaza, voucher.id)
    assert [queries.read_order(m.id, b).status for m, b in zip(made, (1, 2), strict=True)] == [
        SUCCESS,
        SUCCESS,
    ]
    assert sales.counts(voucher.id) == (1, 0, 2) == (sales.stock(voucher.id), 0, 2)


def test_a_rollback_after_the_order_was_saved_changes_nothing(plaza: World) -> None:
    voucher = sales.offer(stock=1)
    made = order(voucher.id, 7)
    facts = sales.parse_events(plaza.queues.take(ORDERS))
    persist.persist_orders(facts)
    for _ in range(2):
        persist.decide_dead_letters(facts)
        sales.check(voucher.id)
    assert queries.read_order(made.id, 7).status == SUCCESS
    assert sales.counts(voucher.id) == (0, 0, 1)


def test_a_unit_goes_back_once_however_often_its_failure_is_told(plaza: World) -> None:
    voucher = sales.offer(stock=2)
    order(voucher.id, 7)
    mysql.write("UPDATE voucher SET stock = 0")
    plaza.queues.messages[ORDERS_DLQ] = plaza.queues.take(ORDERS) * 3
    drain(plaza, voucher.id)
    recover_orders.recover_orders(resend_after_s=0, decide_after_s=0)
    assert sales.counts(voucher.id) == (2, 0, 0)


def test_who_failed_and_orders_again_keeps_the_second_order_when_the_first_comes_late(
    plaza: World,
) -> None:
    voucher = sales.offer(stock=2)
    order(voucher.id, 7)
    late = plaza.queues.take(ORDERS)
    mysql.write("UPDATE voucher SET stock = 0")
    persist.persist_orders(sales.parse_events(late))
    mysql.write("UPDATE voucher SET stock = 2")
    second = order(voucher.id, 7)
    persist.persist_orders(sales.parse_events(late))  # tells Redis once more that the first failed
    sales.check(voucher.id)
    assert queries.read_order(second.id, 7).status == PENDING
    drain(plaza, voucher.id)
    assert sales.counts(voucher.id) == (1, 0, 1)


def test_an_id_of_two_buyers_is_one_order_and_the_other_event_is_refused(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    voucher = sales.offer(stock=3)
    made = order(voucher.id, 7)
    life = redis_store.find_sales([voucher.id])[voucher.id]
    redis_store.reserve(life, made.id, 8)  # as version 1 did when a reply was lost
    redis_store.write_pointer(8, made.id, voucher.id)
    [first] = sales.parse_events(plaza.queues.take(ORDERS))
    second = OrderEvent(made.id, voucher.id, 8, 1)
    third = OrderEvent(made.id, voucher.id + 1, 7, 1)
    with pytest.raises(OrderMismatch):
        persist.persist_orders([second, third, first])
    assert '"orders_mismatched":2' in capsys.readouterr().out
    sales.check(voucher.id)
    assert sales.counts(voucher.id) == (2, 0, 1)
    assert queries.read_order(made.id, 7).status == SUCCESS
    assert queries.read_order(made.id, 8) == Order(made.id, voucher.id, FAILED, "timed-out")
    for stray in (second, third):
        with pytest.raises(OrderMismatch):
            persist.decide_dead_letters([stray])


def test_the_recovery_sends_an_order_with_the_id_of_another_to_the_consumer(plaza: World) -> None:
    voucher = sales.offer(stock=3)
    made = order(voucher.id, 7)
    drain(plaza, voucher.id)
    life = redis_store.find_sales([voucher.id])[voucher.id]
    redis_store.reserve(life, made.id, 8)
    stray = OrderEvent(made.id, voucher.id, 9, 1)
    mysql_orders.add_to_outbox(stray)
    recover_orders.recover_orders(resend_after_s=0, decide_after_s=0)
    sent = sales.parse_events(plaza.queues.take(ORDERS))
    assert [fact.buyer_id for fact in sent] == [9, 8]
    for fact in sent:
        with pytest.raises(OrderMismatch):
            persist.persist_orders([fact])
    assert sales.counts(voucher.id) == (2, 0, 1)
    assert mysql_orders.read_outbox(None, 10) == []


def test_a_batch_with_doubles_of_two_sales_is_saved_once(plaza: World) -> None:
    one, two = sales.offer(stock=3), sales.offer(stock=1)
    for buyer in (1, 2, 3):
        order(one.id, buyer)
    order(two.id, 1)
    bodies = plaza.queues.take(ORDERS)
    persist.persist_orders(sales.parse_events(bodies + bodies[::-1]))
    persist.persist_orders(sales.parse_events(bodies[:2]))
    for voucher, sold in ((one, 3), (two, 1)):
        sales.check(voucher.id)
        assert sales.counts(voucher.id) == (0, 0, sold)
        assert len(sales.rows(voucher.id)) == sold


def test_the_statements_of_a_batch_are_constant(plaza: World) -> None:
    def count(size: int) -> int:
        voucher = sales.offer(stock=size)
        for buyer in range(1, size + 1):
            place_order.place_order(voucher.id, buyer)
        facts = sales.parse_events(plaza.queues.take(ORDERS))
        before = questions()
        persist.persist_orders(facts)
        return questions() - before

    def questions() -> int:
        return int(mysql.fetch_all("SHOW SESSION STATUS LIKE 'Questions'")[0][1])

    assert count(2) == count(200) <= 4 + 2 + 1


def test_a_fact_of_a_voucher_that_is_not_there_fails_alone(plaza: World) -> None:
    voucher = sales.offer()
    made = order(voucher.id, 7)
    stray = OrderEvent(made.id + 1, 31, 7, 1)
    persist.persist_orders([stray, *sales.parse_events(plaza.queues.take(ORDERS))])
    assert queries.read_order(stray.order_id, 7).reason == "sold-out"
    assert queries.read_order(made.id, 7).status == SUCCESS


def test_mysql_itself_refuses_to_sell_what_is_not_there(plaza: World) -> None:
    voucher = sales.offer(stock=1)
    with pytest.raises(Exception, match=r"never_oversold|3819"):
        mysql.write("UPDATE voucher SET stock = stock - 2")
    mysql.write(
        "INSERT INTO voucher_order (order_id, voucher_id, buyer_id, holder_id) VALUES (1, %s, 7, 7)",
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


def test_stock_and_buyers_come_back_from_mysql(plaza: World) -> None:
    voucher = sales.offer(stock=5)
    for buyer in (1, 2):
        order(voucher.id, buyer)
    drain(plaza, voucher.id)
    lose_redis()
    order(voucher.id, 3)
    assert sales.counts(voucher.id) == (2, 1, 2)
    found, made = place_order.place_order(voucher.id, 1)
    assert (found.status, made) == (SUCCESS, False)
    state = sales.read_counts(voucher.id)
    assert state is not None
    assert state.generation == 2


def test_what_is_queued_goes_before_new_clicks(plaza: World) -> None:
    voucher = sales.offer(stock=1)
    first = order(voucher.id, 1)
    lose_redis()
    for _ in range(2):
        with pytest.raises(NotReady):
            place_order.place_order(voucher.id, 2)
    drain(plaza, voucher.id)
    clear_caches()  # two seconds later
    with pytest.raises(SoldOut):
        place_order.place_order(voucher.id, 2)
    assert queries.read_order(first.id, 1).status == SUCCESS
    assert sales.counts(voucher.id) == (0, 0, 1)


def test_a_queue_that_does_not_drain_holds_a_sale_for_30_s_and_mysql_decides(
    plaza: World,
) -> None:
    voucher = sales.offer(stock=1)
    first = order(voucher.id, 1)
    old = plaza.queues.take(ORDERS)
    plaza.queues.messages[ORDERS] = ["something of another sale"]
    lose_redis()
    with pytest.raises(NotReady):
        place_order.place_order(voucher.id, 2)
    redis.execute("HSET", redis_store.state_key(voucher.id), "drain_until_us", sales.now_us() - 1)
    second = order(voucher.id, 2)
    plaza.queues.messages[ORDERS].remove("something of another sale")
    persist.persist_orders(sales.parse_events(old))  # the old one comes first after all
    sales.check(voucher.id)
    assert sales.counts(voucher.id) == (-1, 1, 1)
    drain(plaza, voucher.id)
    assert sales.counts(voucher.id) == (0, 0, 1)
    assert queries.read_order(first.id, 1).status == SUCCESS
    assert queries.read_order(second.id, 2).reason == "sold-out"


def test_who_ordered_in_both_lives_has_one(plaza: World) -> None:
    voucher = sales.offer(stock=5)
    first = order(voucher.id, 1)
    old = plaza.queues.take(ORDERS)
    lose_redis()
    second = order(voucher.id, 1)
    persist.persist_orders(sales.parse_events(old))
    sales.check(voucher.id)
    assert sales.counts(voucher.id) == (3, 1, 1)
    assert queries.read_order(second.id, 1).status == PENDING
    drain(plaza, voucher.id)
    assert sales.counts(voucher.id) == (4, 0, 1)
    assert queries.read_order(first.id, 1).status == SUCCESS
    assert queries.read_order(second.id, 1).reason == "already-bought"
    assert place_order.place_order(voucher.id, 1)[0].id == first.id


def test_an_order_that_sqs_refused_survives_the_loss_of_redis_and_goes_first(
    plaza: World,
) -> None:
    voucher = sales.offer(stock=1)
    plaza.queues.away = True
    made = order(voucher.id, 1)
    plaza.queues.away = False
    clear_caches()  # else it is not asked for two seconds
    lose_redis()
    with pytest.raises(NotReady):
        queries.read_order(made.id, 1)
    with pytest.raises(SoldOut):
        place_order.place_order(voucher.id, 2)
    assert queries.read_order(made.id, 1).status == SUCCESS
    assert sales.counts(voucher.id) == (0, 0, 1)


def test_a_queued_order_is_never_missing_after_redis_lost_its_data(plaza: World) -> None:
    voucher = sales.offer(stock=3)
    first, second = order(voucher.id, 1), order(voucher.id, 2)
    lose_redis()
    with pytest.raises(NotReady):
        queries.read_order(first.id, 1)
    redis_store.write_pointer(
        2, second.id, voucher.id
    )  # in a cluster its node may have lost nothing
    assert queries.read_order(second.id, 2).status == PENDING
    plaza.queues.drain()
    assert queries.read_order(first.id, 1).status == SUCCESS
    assert queries.read_order(second.id, 2).status == SUCCESS


def copy_sales() -> None:
    """Keep what Redis has of sales now, for ``restore_sales``."""
    for key in find_keys("*:voucher:*"):
        redis.execute("COPY", key, f"older:{key}")


def restore_sales() -> None:
    """Put back what was kept, as after a failover to a replica that lacks the last commands."""
    delete_keys(key for key in find_keys("*:voucher:*") if not key.startswith("older:"))
    for key in find_keys("older:*"):
        redis.execute("RENAME", key, key.removeprefix("older:"))


def test_orders_that_a_node_with_older_data_lacks_are_confirmed_by_the_recovery(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recover_orders, "_BATCH", 2)
    voucher = sales.offer(stock=9)
    order(voucher.id, 1)
    copy_sales()
    made = [order(voucher.id, buyer) for buyer in range(2, 7)]
    drain(plaza, voucher.id)
    restore_sales()
    assert sales.counts(voucher.id) == (8, 1, 0)

    recover_orders.recover_orders(0)
    drain(plaza, voucher.id)
    assert sales.counts(voucher.id) == (3, 0, 6)
    assert sales.stock(voucher.id) == 3
    assert place_order.place_order(voucher.id, 2) == (made[0]._replace(status=SUCCESS), False)


def test_a_sale_that_agrees_is_not_confirmed_again(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    voucher = sales.offer(stock=3)
    order(voucher.id, 1)
    order(voucher.id, 2)
    drain(plaza, voucher.id)
    order(voucher.id, 3)
    recover_orders.recover_orders(0)
    assert "orders_reconfirmed" not in capsys.readouterr().out


def test_a_script_of_an_old_life_is_refused(plaza: World) -> None:
    voucher = sales.offer(stock=5)
    old = redis_store.find_sales([voucher.id])[voucher.id]
    lose_redis()
    order(voucher.id, 1)
    assert redis_store.reserve(old, 1, 9) == ("STALE_GENERATION", "", True)
    assert redis_store.open_sale(old, None, drained=True) == "STALE_GENERATION"
    assert not redis_store.load_successes(old, [(1, 9)])
    assert redis_store.find_overdue([old], 0, 10) == []
    sales.check(voucher.id)
    assert sales.counts(voucher.id) == (4, 1, 0)


def test_a_load_is_never_over_a_live_state(plaza: World) -> None:
    voucher = sales.offer(stock=5)
    order(voucher.id, 1)
    life, phase, _ = redis_store.begin_loading(SaleGeneration(voucher.id, 99, 5), voucher, 0)
    assert (life.generation, phase) == (1, "live")
    assert sales.counts(voucher.id) == (4, 1, 0)


def test_a_load_that_died_is_gone_on_with_by_the_recovery(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from plaza.flash_sales import load_sale

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


def test_what_is_saved_while_it_is_loaded_is_in_it(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    voucher = sales.offer(stock=10)
    for buyer in (1, 2, 3):
        order(voucher.id, buyer)
    bodies = plaza.queues.take(ORDERS)
    persist.persist_orders(sales.parse_events(bodies[:1]))
    lose_redis()
    adopt = redis_store.load_successes

    def adopt_while_others_save(life: SaleGeneration, successes: list[tuple[int, int]]) -> bool:
        persist.persist_orders(sales.parse_events(bodies[1:2]))
        done = adopt(life, successes)
        persist.persist_orders(sales.parse_events(bodies[2:]))
        return done

    monkeypatch.setattr(redis_store, "load_successes", adopt_while_others_save)
    order(voucher.id, 4)
    assert sales.counts(voucher.id) == (6, 1, 3)


# ---------------------------------------------------------------- servers are away


def test_while_redis_is_away_nobody_is_told_what_is_not_known(
    plaza: World, redis_away: Away
) -> None:
    voucher = sales.offer()
    made = order(voucher.id, 7)
    with redis_away():
        for ask in (
            lambda: place_order.place_order(voucher.id, 8),
            lambda: queries.read_order(made.id, 7),
            lambda: queries.list_orders(7, None, 10),
            lambda: persist.persist_orders(sales.parse_events(plaza.queues.messages[ORDERS])),
        ):
            redis.REDIS.breaker.close()
            with pytest.raises(RedisDown):
                ask()
        # It is saved, though, and MySQL can say so.
        redis.REDIS.breaker.close()
        assert queries.read_order(made.id, 7).status == SUCCESS
        [offer], _ = queries.list_vouchers(sales.SHOP, None, 10)
        assert (offer.left, offer.exact) == (2, False)


def test_while_mysql_is_away_a_sale_that_is_in_redis_goes_on(
    plaza: World, mysql_away: Away
) -> None:
    voucher = sales.offer()
    with mysql_away():
        made = order(voucher.id, 7)
        assert queries.read_order(made.id, 7).status == PENDING
        with pytest.raises(MysqlDown):
            persist.persist_orders(sales.parse_events(plaza.queues.messages[ORDERS]))
    drain(plaza, voucher.id)
    assert queries.read_order(made.id, 7).status == SUCCESS


def test_who_was_not_told_because_redis_failed_between_is_found_by_repeating(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    voucher = sales.offer()

    def down(*_: object) -> None:
        raise RedisDown("away (a test says so)")

    with monkeypatch.context() as patch:
        patch.setattr(redis_store, "write_pointer", down)
        with pytest.raises(RedisDown):
            place_order.place_order(voucher.id, 7)
    sales.check(voucher.id)
    found, made = place_order.place_order(voucher.id, 7)
    assert not made
    assert queries.read_order(found.id, 7) == found
    drain(plaza, voucher.id)  # it was pushed all the same
    assert queries.read_order(found.id, 7).status == SUCCESS


def test_a_batch_that_redis_was_not_told_of_comes_again(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    voucher = sales.offer()
    made = order(voucher.id, 7)
    facts = sales.parse_events(plaza.queues.take(ORDERS))
    mysql.run_in_transaction(lambda cursor: persist._write(cursor, facts))
    assert queries.read_order(made.id, 7).status == PENDING
    persist.persist_orders(facts)
    sales.check(voucher.id)
    assert queries.read_order(made.id, 7).status == SUCCESS


# ---------------------------------------------------------------- a shop was deleted


def delete_shop() -> None:
    mysql.write("UPDATE shop SET deleted_at = UTC_TIMESTAMP(6) WHERE id = %s", (sales.SHOP,))


def test_what_a_deleted_shop_offered_is_gone_also_while_it_is_cached(plaza: World) -> None:
    voucher = sales.offer(stock=3)
    made = order(voucher.id, 7)
    delete_shop()
    withdraw_vouchers.withdraw_vouchers(sales.SHOP)
    for _ in range(2):
        with pytest.raises(VoucherWithdrawn):
            place_order.place_order(voucher.id, 8)
    with pytest.raises(Gone):
        queries.list_vouchers(sales.SHOP, None, 10)
    with pytest.raises(VoucherWithdrawn):
        sales.offer(stock=3)
    assert place_order.place_order(voucher.id, 7) == (made, False)
    drain(plaza, voucher.id)
    withdrawn = Order(made.id, voucher.id, FAILED, "withdrawn")
    assert queries.read_order(made.id, 7) == withdrawn
    assert sales.counts(voucher.id) == (3, 0, 0)
    lose_redis()
    for buyer in (7, 8):
        with pytest.raises(VoucherWithdrawn):
            place_order.place_order(voucher.id, buyer)
    close(voucher.id)
    assert finalize_vouchers.finalize_vouchers() == 1


def test_who_bought_before_the_shop_was_deleted_keeps_it(plaza: World) -> None:
    voucher = sales.offer(stock=3)
    made = order(voucher.id, 7)
    drain(plaza, voucher.id)
    delete_shop()
    withdraw_vouchers.withdraw_vouchers(sales.SHOP)
    bought = made._replace(status=SUCCESS)
    assert place_order.place_order(voucher.id, 7) == (bought, False)
    lose_redis()
    assert place_order.place_order(voucher.id, 7) == (bought, False)
    assert queries.read_order(made.id, 7) == bought


def test_the_recovery_withdraws_what_nobody_withdrew_and_a_restored_shop_sells_again(
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
    clear_caches()  # a second later
    order(voucher.id, 8)
    drain(plaza, voucher.id)
    assert sales.counts(voucher.id) == (1, 0, 2)


# ---------------------------------------------------------------- settling


def close(voucher_id: int, seconds_ago: int = 120) -> None:
    """As if the sale had closed so long ago."""
    at = sales.now_us() - seconds_ago * 1_000_000
    mysql.write(
        "UPDATE voucher SET opens_at = FROM_UNIXTIME(1), closes_at = FROM_UNIXTIME(%s)"
        " WHERE id = %s",
        (at // 1_000_000, voucher_id),
    )
    state = redis_store.state_key(voucher_id)
    redis.execute("HSET", state, "closes_us", at)
    clear_caches()


def test_a_sale_that_is_over_is_settled_and_leaves_redis(plaza: World) -> None:
    voucher = sales.offer(stock=3)
    made = order(voucher.id, 7)
    drain(plaza, voucher.id)
    assert finalize_vouchers.finalize_vouchers() == 0
    close(voucher.id)
    assert finalize_vouchers.finalize_vouchers() == 1
    assert finalize_vouchers.finalize_vouchers() == 0
    keys = find_keys("*:voucher:*")
    assert keys
    assert all(redis.execute("TTL", key) > 0 for key in keys)
    redis.execute("DEL", *keys)
    assert place_order.place_order(voucher.id, 7) == (made._replace(status=SUCCESS), False)
    with pytest.raises(NotOpen):
        place_order.place_order(voucher.id, 8)
    [offer], _ = queries.list_vouchers(sales.SHOP, None, 10)
    assert (offer.left, offer.exact) == (2, True)


def test_a_sale_with_a_pending_order_or_with_a_queue_is_not_settled_yet(plaza: World) -> None:
    voucher = sales.offer(stock=3)
    order(voucher.id, 7)
    close(voucher.id)
    assert finalize_vouchers.finalize_vouchers() == 0
    plaza.queues.drain()
    plaza.queues.messages[ORDERS] = ["of another sale"]
    clear_caches()
    assert finalize_vouchers.finalize_vouchers() == 0
    plaza.queues.messages.clear()
    clear_caches()
    assert finalize_vouchers.finalize_vouchers() == 1


def test_a_queue_that_never_rests_does_not_keep_a_sale_for_more_than_an_hour(
    plaza: World,
) -> None:
    voucher = sales.offer(stock=3)
    plaza.queues.messages[ORDERS] = ["of another sale"]
    close(voucher.id, 3700)
    assert finalize_vouchers.finalize_vouchers() == 1


def test_a_difference_is_counted_and_the_state_stays(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    voucher = sales.offer(stock=3)
    mysql.write("UPDATE voucher SET stock = 2")
    close(voucher.id)
    assert finalize_vouchers.finalize_vouchers() == 0
    assert '"vouchers_with_drift":1' in capsys.readouterr().out
    assert redis.execute("TTL", redis_store.state_key(voucher.id)) == -1


# ---------------------------------------------------------------- lists, ids and waiting


def test_orders_are_listed_page_by_page_pending_and_decided(plaza: World) -> None:
    vouchers = [sales.offer(stock=2) for _ in range(5)]
    made = [order(voucher.id, 7) for voucher in vouchers[:3]]
    plaza.queues.drain()
    made += [order(voucher.id, 7) for voucher in vouchers[3:]]
    listed, before = [], None
    while True:
        page, before = queries.list_orders(7, before, 2)
        listed += page
        if before is None:
            break
    assert [found.id for found in listed] == [found.id for found in made[::-1]]
    assert [found.status for found in listed] == [PENDING] * 2 + [SUCCESS] * 3
    assert queries.list_orders(8, None, 2) == ([], None)


def test_the_vouchers_of_a_shop_are_listed_with_what_is_left(plaza: World) -> None:
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


def test_who_waits_is_told_to_wait_longer_while_the_queue_is_long_and_sqs_is_asked_seldom(
    plaza: World, set_up: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from plaza.infra import sqs
    from plaza.infra.sqs import Depth

    set_up(orders_per_s=100)
    asked: list[object] = []
    depth = Depth(400, 40, 10)
    monkeypatch.setattr(sqs, "measure", lambda queue: record_call(asked, queue, depth))
    assert [backlog.poll_after_s() for _ in range(10)] == [5] * 10
    assert len(asked) == 1
    clear_caches()
    monkeypatch.setattr(sqs, "measure", lambda queue: Depth(10_000_000, 0, 0))
    assert backlog.poll_after_s() == 60


def test_buyers_are_kept_in_many_small_keys(plaza: World, set_up: Callable[..., None]) -> None:
    set_up(orders_per_s=100_000)
    voucher = sales.offer(stock=3000)
    for buyer in range(1, 3001):
        place_order.place_order(voucher.id, buyer)
    sales.check(voucher.id)
    sizes = [redis.execute("HLEN", key) for key in find_keys("*:buyers:*")]
    assert sum(sizes) == 3000
    assert len(sizes) == 47
    assert max(sizes) < 128

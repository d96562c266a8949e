"""What becomes of a success, on real servers: it is used, cancelled or expires."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from pymysql.connections import Connection
from pymysql.cursors import Cursor
from pymysql.err import OperationalError

from plaza.commerce.flash_sales import (
    CANCELLED,
    EXPIRED,
    PENDING,
    SUCCESS,
    USED,
    Order,
    cancel_order,
    codes,
    finalize_vouchers,
    mysql_orders,
    mysql_vouchers,
    persist,
    place_order,
    queries,
    recover_orders,
    redis_orders,
)
from plaza.commerce.flash_sales.model import (
    MAX_CANCELS,
    AlreadyUsed,
    NotCancellable,
    NotUsable,
    OrderMissing,
    OrderRow,
    SoldOut,
    TooManyCodes,
    WrongCode,
)
from plaza.commerce.flash_sales.queues import ORDERS
from plaza.core.idempotency import IdempotentRequest, KeyReused
from plaza.infra.mysql import driver, mysql
from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.process import clear_caches, reset_process
from plaza.infra.runtime.settings import settings
from tests.integration.conftest import Away
from tests.support import sales
from tests.support.failures import failing
from tests.support.plaza import World


def buy(plaza: World, voucher_id: int, buyer_id: int) -> Order:
    """Return a success of a buyer."""
    clear_caches()
    placed, _ = place_order.place_order(voucher_id, buyer_id)
    plaza.queues.drain()
    assert queries.read_order(placed.id, buyer_id).status == SUCCESS
    return placed


raise_redis_down = failing(RedisDown("down, simulated by a test"))


def check(voucher_id: int, stock: int, pending: int, sold: int) -> None:
    """Assert the counts in Redis, and with nothing pending that MySQL has the same."""
    sales.check(voucher_id)
    assert sales.counts(voucher_id) == (stock, pending, sold)
    assert pending or sales.stock(voucher_id) == stock


# ---------------------------------------------------------------- codes


def test_an_order_is_used_once_by_its_code(plaza: World) -> None:
    voucher = sales.offer()
    order = buy(plaza, voucher.id, 7)
    code = codes.issue_code(order.id, 7)
    used = codes.redeem_code(voucher.id, code.lower().replace("-", " "), sales.ADMIN)
    assert (used.order_id, used.voucher_id) == (order.id, voucher.id)
    assert queries.read_order(order.id, 7).status == USED
    assert [item.status for item in sales.list_orders(7, None, 10)[0]] == [USED]
    for _ in range(2):
        with pytest.raises(AlreadyUsed):
            codes.redeem_code(voucher.id, code, sales.ADMIN)
    with pytest.raises(NotUsable):
        codes.issue_code(order.id, 7)
    check(voucher.id, 2, 0, 1)


def test_a_repeat_with_the_key_gets_the_same_redemption(plaza: World) -> None:
    voucher = sales.offer()
    code = codes.issue_code(buy(plaza, voucher.id, 7).id, 7)
    key = IdempotentRequest.of("k1", {"code": code})
    used = codes.redeem_code(voucher.id, code, sales.ADMIN, key)
    assert codes.redeem_code(voucher.id, code, sales.ADMIN, key) == used
    with pytest.raises(AlreadyUsed):
        codes.redeem_code(voucher.id, code, sales.ADMIN, IdempotentRequest.of("k2", {"code": code}))
    other = IdempotentRequest.of("k1", {"code": "another"})
    with pytest.raises(KeyReused):
        codes.redeem_code(voucher.id, code, sales.ADMIN, other)


def test_only_the_newest_code_is_valid_and_only_its_digest_is_stored(plaza: World) -> None:
    voucher = sales.offer()
    order = buy(plaza, voucher.id, 7)
    lost, code = codes.issue_code(order.id, 7), codes.issue_code(order.id, 7)
    with pytest.raises(WrongCode):
        codes.redeem_code(voucher.id, lost, sales.ADMIN)
    [(stored,)] = mysql.fetch_all("SELECT code_sha256 FROM voucher_order")
    assert len(stored) == 32
    assert code.replace("-", "").encode() not in stored
    codes.redeem_code(voucher.id, code, sales.ADMIN)


def test_a_code_that_is_replaced_while_it_is_redeemed_is_wrong(plaza: World) -> None:
    voucher = sales.offer(stock=1)
    order = buy(plaza, voucher.id, 7)
    lost, code = (codes._digest(codes.issue_code(order.id, 7)) for _ in range(2))

    def use(digest: bytes) -> bool:
        return mysql.run_in_transaction(
            lambda cursor: mysql_orders.use(cursor, order.id, digest, sales.ADMIN)
        )

    assert (use(lost), use(code)) == (False, True)
    mysql_orders.store_code(order.id, lost)
    assert mysql_orders.read_by_code(voucher.id, code), "a used order keeps its code"


def test_a_code_is_for_its_voucher_and_its_buyer(plaza: World) -> None:
    voucher, other = sales.offer(), sales.offer()
    order = buy(plaza, voucher.id, 7)
    with pytest.raises(OrderMissing):
        codes.issue_code(order.id, 8)
    code = codes.issue_code(order.id, 7)
    with pytest.raises(WrongCode):
        codes.redeem_code(other.id, code, sales.ADMIN)
    codes.redeem_code(voucher.id, code, sales.ADMIN)


def test_a_pending_order_has_no_code(plaza: World) -> None:
    placed, _ = place_order.place_order(sales.offer().id, 7)
    with pytest.raises(NotUsable, match="pending"):
        codes.issue_code(placed.id, 7)


def test_wrong_codes_are_limited_and_right_ones_are_not(plaza: World) -> None:
    voucher = sales.offer(stock=15)
    for buyer in range(1, 13):
        code = codes.issue_code(buy(plaza, voucher.id, buyer).id, buyer)
        codes.redeem_code(voucher.id, code, sales.ADMIN)
    for _ in range(10):
        with pytest.raises(WrongCode):
            codes.redeem_code(voucher.id, "0000-0000-0000-0000", sales.ADMIN)
    with pytest.raises(TooManyCodes) as refused:
        codes.redeem_code(voucher.id, code, sales.ADMIN)
    assert 1 <= refused.value.retry_after_s <= 60
    with pytest.raises(AlreadyUsed):
        codes.redeem_code(voucher.id, code, sales.ADMIN + 1)


def test_a_code_is_redeemed_while_redis_is_unavailable(plaza: World, redis_away: Away) -> None:
    voucher = sales.offer()
    code = codes.issue_code(buy(plaza, voucher.id, 7).id, 7)
    with redis_away():
        codes.redeem_code(voucher.id, code, sales.ADMIN)
        with pytest.raises(AlreadyUsed):
            codes.redeem_code(voucher.id, code, sales.ADMIN)


def connect() -> Connection[Cursor]:
    connection = mysql.connect_dedicated(database=settings().mysql.database)
    connection.query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    return connection


def run_at_once(*work: Callable[[Cursor], bool]) -> list[bool]:
    """Run each function in a transaction of its own connection, all at once, again after a
    conflict, as ``mysql.run_in_transaction`` does."""
    ready = threading.Barrier(len(work))

    def run(item: Callable[[Cursor], bool]) -> bool:
        with closing(connect()) as connection, connection.cursor() as cursor:
            ready.wait(20)
            while True:
                connection.begin()
                try:
                    return item(cursor)
                except NotCancellable:
                    return False
                except OperationalError as error:
                    if not driver.is_conflict(error):
                        raise
                finally:
                    connection.commit()

    with ThreadPoolExecutor(len(work)) as pool:
        return list(pool.map(run, work))


def test_of_concurrent_redemptions_and_cancellations_one_wins(plaza: World) -> None:
    voucher = sales.offer(stock=9)
    for buyer in range(1, 6):
        order = buy(plaza, voucher.id, buyer)
        code = codes._digest(codes.issue_code(order.id, buyer))
        row = OrderRow(order.id, voucher.id, buyer, CANCELLED)

        def redeem(cursor: Cursor, order_id: int = order.id, code: bytes = code) -> bool:
            return mysql_orders.use(cursor, order_id, code, sales.ADMIN)

        def cancel(cursor: Cursor, row: OrderRow = row) -> bool:
            return cancel_order._cancel(cursor, row)

        assert sorted(run_at_once(redeem, cancel, redeem, cancel)) == [False, False, False, True]
        assert queries.read_order(order.id, buyer).status in (USED, CANCELLED)
    recover_orders.recover_orders(0)
    sales.check(voucher.id)
    assert sales.counts(voucher.id)[0] == sales.stock(voucher.id)


# ---------------------------------------------------------------- cancelling


def test_a_cancelled_order_returns_its_unit_once_and_its_buyer_may_order_again(
    plaza: World,
) -> None:
    voucher = sales.offer(stock=1)
    order = buy(plaza, voucher.id, 7)
    code = codes.issue_code(order.id, 7)
    for _ in range(3):
        assert cancel_order.cancel_order(order.id, 7) == order._replace(status=CANCELLED)
        check(voucher.id, 1, 0, 0)
    assert queries.read_order(order.id, 7).status == CANCELLED
    with pytest.raises(WrongCode):
        codes.redeem_code(voucher.id, code, sales.ADMIN)
    again = buy(plaza, voucher.id, 7)
    assert again.id != order.id
    assert cancel_order.cancel_order(order.id, 7).status == CANCELLED
    check(voucher.id, 0, 0, 1)
    with pytest.raises(SoldOut):
        place_order.place_order(voucher.id, 8)


def test_a_pending_order_can_be_cancelled_before_its_message_arrives(plaza: World) -> None:
    voucher = sales.offer(stock=1)
    placed, _ = place_order.place_order(voucher.id, 7)
    assert placed.status == PENDING
    assert cancel_order.cancel_order(placed.id, 7).status == CANCELLED
    check(voucher.id, 1, 0, 0)
    other, _ = place_order.place_order(voucher.id, 8)
    plaza.queues.drain()
    assert queries.read_order(placed.id, 7).status == CANCELLED
    assert queries.read_order(other.id, 8).status == SUCCESS
    check(voucher.id, 0, 0, 1)


def test_a_late_message_does_not_confirm_a_cancelled_order(plaza: World) -> None:
    voucher = sales.offer(stock=2)
    placed, _ = place_order.place_order(voucher.id, 7)
    bodies = list(plaza.queues.messages[ORDERS])
    plaza.queues.drain()
    [row] = sales.rows(voucher.id).values()
    cancel_order.cancel_order(placed.id, 7)
    redis_orders.acknowledge([row])  # of a consumer that committed the success and then slept
    check(voucher.id, 2, 0, 0)
    persist.persist_orders(sales.parse_events(bodies))
    check(voucher.id, 2, 0, 0)
    redis.execute("FLUSHALL")
    clear_caches()
    place_order.place_order(voucher.id, 8)
    redis_orders.acknowledge([row])  # also after the state was loaded again
    check(voucher.id, 1, 1, 0)


def test_the_recovery_returns_the_unit_of_a_request_that_ended_after_its_commit(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    voucher = sales.offer(stock=3)
    order = buy(plaza, voucher.id, 7)
    buy(plaza, voucher.id, 8)

    with monkeypatch.context() as patch:
        patch.setattr(redis_orders, "acknowledge", raise_redis_down)
        with pytest.raises(RedisDown):
            cancel_order.cancel_order(order.id, 7)
    assert sales.counts(voucher.id) == (1, 0, 2)
    for _ in range(2):
        recover_orders.recover_orders(0)
        check(voucher.id, 2, 0, 1)


def test_a_buyer_orders_again_after_a_cancellation_without_an_answer(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    voucher = sales.offer(stock=1)
    order = buy(plaza, voucher.id, 7)
    with monkeypatch.context() as patch:
        patch.setattr(redis_orders, "acknowledge", raise_redis_down)
        with pytest.raises(RedisDown):
            cancel_order.cancel_order(order.id, 7)
    with pytest.raises(SoldOut):
        place_order.place_order(voucher.id, 8)
    again, created = place_order.place_order(voucher.id, 7)
    assert (again.status, created) == (PENDING, True)
    check(voucher.id, 0, 1, 0)


def test_a_load_from_mysql_has_the_cancelled_orders(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from plaza.commerce.flash_sales import load_sale

    voucher = sales.offer(stock=9)
    for buyer in range(1, 6):
        order = buy(plaza, voucher.id, buyer)
        cancel_order.cancel_order(order.id, buyer)
        buy(plaza, voucher.id, buyer)
    redis.execute("FLUSHALL")
    clear_caches()
    monkeypatch.setattr(load_sale, "_PAGE", 2)
    monkeypatch.setattr(load_sale, "MAX_RUN_S", 0.0)
    for _ in range(6):
        with pytest.raises(Unavailable):
            load_sale.load_sale(voucher.id)
        sales.check(voucher.id)
    load_sale.load_sale(voucher.id)
    check(voucher.id, 4, 0, 5)
    counts = sales.read_counts(voucher.id)
    assert counts is not None
    assert counts.cancelled == 5


def test_what_cannot_be_cancelled_is_refused(plaza: World) -> None:
    voucher = sales.offer(stock=20)
    order = buy(plaza, voucher.id, 7)
    with pytest.raises(OrderMissing):
        cancel_order.cancel_order(order.id, 8)
    codes.redeem_code(voucher.id, codes.issue_code(order.id, 7), sales.ADMIN)
    with pytest.raises(NotCancellable, match="used"):
        cancel_order.cancel_order(order.id, 7)
    for _ in range(MAX_CANCELS):
        cancel_order.cancel_order(buy(plaza, voucher.id, 9).id, 9)
    with pytest.raises(NotCancellable, match="cancelled 5"):
        cancel_order.cancel_order(buy(plaza, voucher.id, 9).id, 9)
    assert cancel_order.cancel_order(buy(plaza, voucher.id, 8).id, 8).status == CANCELLED
    check(voucher.id, 18, 0, 2)


def test_an_order_of_a_finalized_sale_can_be_cancelled(plaza: World) -> None:
    voucher = sales.offer(stock=3)
    order = buy(plaza, voucher.id, 7)
    mysql.write("UPDATE voucher SET closes_at = UTC_TIMESTAMP(6) - INTERVAL 2 HOUR")
    assert finalize_vouchers.finalize_vouchers() == 1
    assert cancel_order.cancel_order(order.id, 7).status == CANCELLED
    assert sales.stock(voucher.id) == 3
    sales.check(voucher.id)
    redis.execute("FLUSHALL")
    assert cancel_order.cancel_order(order.id, 7).status == CANCELLED


# ---------------------------------------------------------------- expiry, kinds


def test_an_expired_order_is_neither_used_nor_cancelled(plaza: World) -> None:
    voucher = sales.offer()
    order = buy(plaza, voucher.id, 7)
    code = codes.issue_code(order.id, 7)
    mysql.write("UPDATE voucher SET expires_at = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND")
    assert queries.read_order(order.id, 7).status == EXPIRED
    with pytest.raises(NotUsable, match="expired"):
        codes.redeem_code(voucher.id, code, sales.ADMIN)
    with pytest.raises(NotCancellable, match="expired"):
        cancel_order.cancel_order(order.id, 7)
    with pytest.raises(NotUsable, match="expired"):
        codes.issue_code(order.id, 7)
    check(voucher.id, 2, 0, 1)


def test_a_success_is_read_from_redis_while_mysql_is_unavailable(
    plaza: World, mysql_away: Away
) -> None:
    voucher = sales.offer()
    order = buy(plaza, voucher.id, 7)
    with mysql_away():
        assert queries.read_order(order.id, 7).status == SUCCESS
    reset_process()
    assert mysql_orders.read(order.id) is not None
    result = mysql_vouchers.read(voucher.id)
    assert result is not None
    assert result.terms == voucher.terms

"""A clock of a store that goes back an hour: what the store keeps for later ends when it should.

Each test stores a time an hour ahead, as a request has left it before the clock went back.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from plaza.commerce.flash_sales import (
    place_order,
    redis_keys,
    redis_load,
    redis_orders,
    redis_sales,
    redis_waitlist,
)
from plaza.commerce.flash_sales.model import OFFER_US, OrderRateExceeded, SaleGeneration
from plaza.core.event_log import read_events
from plaza.core.event_log.model import LogHead
from plaza.infra.http import limits
from plaza.infra.http.limits import Attempt, Bucket, Window
from plaza.infra.mysql import mysql
from plaza.infra.queues import save_rate
from plaza.infra.redis import redis
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import Busy
from plaza.integrations.webhooks import mysql_webhooks
from plaza.notifications.push import mysql_store as push_store
from tests.support import sales
from tests.support.plaza import World

HOUR_US = 3_600_000_000


def wait_for(is_done: Callable[[], bool], seconds: float = 5) -> None:
    """Wait until a condition is true. Raises AssertionError after ``seconds``."""
    until_s = time.monotonic() + seconds
    while not is_done():
        assert time.monotonic() < until_s
        time.sleep(0.02)


def open_sale(stock: int = 5) -> SaleGeneration:
    voucher = sales.offer(stock=stock)
    return redis_sales.find_sales([voucher.id])[voucher.id]


# ---------------------------------------------------------------- Redis


def test_a_bucket_is_never_full_later_than_its_burst(plaza: World) -> None:
    bucket = Bucket("writes", "7", per_s=5, burst=50)
    redis.execute("SET", bucket.key, sales.now_us() + HOUR_US)
    assert 0 < limits.acquire(bucket) <= 200
    assert 0 < redis.execute("PTTL", bucket.key) <= 10_200
    wait_for(lambda: limits.acquire(bucket) == 0)


def test_a_sale_limits_no_buyer_for_longer_than_its_burst(plaza: World) -> None:
    sale = open_sale()
    sales.change_counts(sale.voucher_id, full_us=sales.now_us() + HOUR_US)
    with pytest.raises(OrderRateExceeded) as refused:
        place_order.place_order(sale.voucher_id, 1)
    assert refused.value.retry_after_s == 1

    def is_ordered() -> bool:
        try:
            return place_order.place_order(sale.voucher_id, 1)[1]
        except OrderRateExceeded:
            return False

    wait_for(is_ordered)


def test_consumers_wait_for_no_more_than_their_largest_batch(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAZA_SAVED_ROWS_PER_S", "100000")
    save_rate.save_settings.cache_clear()
    redis.execute("SET", save_rate.KEY, sales.now_us() + HOUR_US)
    with pytest.raises(Busy):
        save_rate.wait_for_turn(10)
    assert 0 < redis.execute("PTTL", save_rate.KEY) <= 5_000
    save_rate.save_settings.cache_clear()


def test_attempts_of_a_later_time_count_from_now_on(plaza: World) -> None:
    window = Window(duration_s=60, max_attempts=2)
    later_ms = (sales.now_us() + HOUR_US) // 1000
    first = Attempt("codes", "7")
    for name in ("a", "b"):
        redis.execute("ZADD", limits.limit_key(first), later_ms, name)
    assert 59_000 < limits.admit(first, [window]) <= 60_000


def test_an_order_of_a_later_time_is_recovered(plaza: World) -> None:
    sale = open_sale()
    place_order.place_order(sale.voucher_id, 1)
    key = redis_keys.recovery_key(sale)
    [entry] = redis.execute("LRANGE", key, 0, -1)
    order, buyer, second = entry.split(":")
    redis.execute("LSET", key, 0, f"{order}:{buyer}:{int(second) + 3600}")
    overdue, _ = redis_orders.find_overdue([sale], 300_000_000, 10)
    assert [event.buyer_id for event in overdue] == [1]


def test_an_offer_lasts_no_longer_than_a_new_one(plaza: World) -> None:
    sale = open_sale()
    now_us = clock.now_us()
    key = redis_keys.offers_key(sale)
    redis.execute("ZADD", key, now_us + HOUR_US, "7", now_us + 1_000_000, "8", 1, "9")
    assert redis_waitlist.find_ended(sale, now_us) == [9]
    assert redis_waitlist.read_offers([(sale, 7), (sale, 8)]) == [
        now_us + OFFER_US,
        now_us + 1_000_000,
    ]


def test_a_sale_drains_for_half_a_minute_at_most(plaza: World) -> None:
    sale = open_sale()
    state = redis_keys.state_key(sale.voucher_id)
    redis.execute(
        "HSET", state, "phase", "loading", "drain_until_us", str(sales.now_us() + HOUR_US)
    )
    assert redis_load.open_sale(sale, False, "") == "DRAINING"
    left_us = int(redis.execute("HGET", state, "drain_until_us")) - sales.now_us()
    assert 0 < left_us <= redis_load.MAX_DRAIN_US


# ---------------------------------------------------------------- MySQL


def test_the_head_of_the_logs_is_moved(plaza: World) -> None:
    mysql.write("UPDATE event_head SET claimed_at = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR")
    mysql.write(
        "INSERT INTO event_log (kind, actor_id, target_type, target_id, resource_id, created_at)"
        " VALUES ('comment.created', 1, 'post', 11, 5, UTC_TIMESTAMP(6))"
    )
    [(seq,)] = mysql.fetch_all("SELECT MAX(seq) FROM event_log")
    assert read_events.find_head().event_seq == seq


@pytest.mark.parametrize("column", ["leased_until", "next_at"])
@pytest.mark.parametrize("failures", [0, 2])
def test_a_webhook_is_due_after_its_lease_and_its_pause(
    plaza: World, column: str, failures: int
) -> None:
    mysql.write(
        "INSERT INTO webhook (id, url, kinds, state, reaction_seq, event_seq, read_s, failures)"
        " VALUES (1, '', '', 'enabled', 0, 0, 0, %s)",
        (failures,),
    )
    head = LogHead(0, 1, 1)

    def is_due(ahead_s: int) -> bool:
        mysql.write(f"UPDATE webhook SET {column} = UTC_TIMESTAMP(6) + INTERVAL {ahead_s} SECOND")
        return bool(mysql_webhooks.find_due(head))

    assert is_due(3_600)
    assert not is_due(3) or (column, failures) == ("next_at", 0)


def test_a_notify_is_announced_again(plaza: World) -> None:
    mysql.write("INSERT INTO push_recipient (user_id, pushed_sequence) VALUES (7, 0)")
    mysql.write(
        "INSERT INTO push_subscription (user_id, endpoint_hash, endpoint, public_key, auth_secret)"
        " VALUES (7, '', '', '', '')"
    )
    push_store.set_due([7], 3_600)
    assert push_store.find_unscheduled([7]) == [7]
    push_store.set_due([7], 20)
    assert push_store.find_unscheduled([7]) == []

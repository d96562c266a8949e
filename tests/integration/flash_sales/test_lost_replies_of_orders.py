"""Orders while replies of Redis are lost: the client library sends the command again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from local.stack.servers import Server
from plaza.flash_sales import PENDING, SUCCESS, place_order, queries, redis_store
from plaza.flash_sales.model import SoldOut
from plaza.flash_sales.queues import ORDERS
from plaza.infra import redis, resends
from tests.chaos.proxy import Proxy
from tests.support import sales
from tests.support.plaza import World
from tests.support.servers import IS_CLUSTER

pytestmark = pytest.mark.skipif(IS_CLUSTER, reason="one road leads to one Redis")

Lose = Callable[[], None]


@pytest.fixture
def lose_next_reply(
    plaza: World, redis_server: Server, set_up: Callable[..., None]
) -> Iterator[Lose]:
    """``lose_next_reply()``: Redis executes the next command, and its reply is lost."""
    with Proxy() as proxy:
        port = proxy.add_route("redis", redis_server.port)
        set_up(redis_url=f"redis://127.0.0.1:{port}/0")
        yield lambda: proxy.set("redis", "lose")


def test_a_reservation_whose_reply_is_lost_is_one_order_of_one_buyer(
    plaza: World, lose_next_reply: Lose
) -> None:
    voucher = sales.offer(stock=2)
    other = sales.offer(stock=1)
    place_order.place_order(other.id, 99)  # this process has ids and knows where the sale is
    place_order._find_sale(voucher.id)
    lose_next_reply()
    first, made = place_order.place_order(voucher.id, 1)
    second, _ = place_order.place_order(voucher.id, 2)
    assert second.id != first.id
    assert (first.status, made) == (PENDING, True)
    assert len(plaza.queues.messages[ORDERS]) == 3
    plaza.queues.drain()
    sales.check(voucher.id)
    assert sales.counts(voucher.id) == (0, 0, 2) == (sales.stock(voucher.id), 0, 2)
    for found, buyer in ((first, 1), (second, 2)):
        assert queries.read_order(found.id, buyer) == found._replace(status=SUCCESS)


def test_the_id_of_a_refusal_whose_first_copy_may_run_later_is_not_used_again(
    plaza: World, lose_next_reply: Lose
) -> None:
    voucher = sales.offer(stock=1)
    place_order.place_order(voucher.id, 1)
    lose_next_reply()
    with pytest.raises(SoldOut):
        place_order.place_order(voucher.id, 2)
    assert not place_order._spare_ids
    assert resends.count_resends() >= 1
    place_order._refusals.clear()
    with pytest.raises(SoldOut):
        place_order.place_order(voucher.id, 2)
    assert len(place_order._spare_ids) == 1


def test_a_lease_whose_reply_is_lost_is_held(plaza: World, lose_next_reply: Lose) -> None:
    voucher = sales.offer()
    redis.execute("PING")
    lose_next_reply()
    assert redis_store.acquire_lease(voucher.id)
    assert not redis_store.acquire_lease(voucher.id)

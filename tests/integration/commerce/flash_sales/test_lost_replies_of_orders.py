"""Orders whose replies from Redis are lost: the client library resends the commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from local.stack.servers import Server
from plaza.commerce.flash_sales import PENDING, SUCCESS, place_order, queries, redis_load
from plaza.commerce.flash_sales.model import SoldOut
from plaza.commerce.flash_sales.queues import ORDERS
from plaza.infra.redis import redis, resends
from tests.chaos.proxy import Proxy
from tests.support import sales
from tests.support.plaza import World
from tests.support.servers import IS_CLUSTER

pytestmark = pytest.mark.skipif(IS_CLUSTER, reason="the proxy has one route to one Redis")

LoseReply = Callable[[], None]


@pytest.fixture
def lose_next_reply(
    plaza: World, redis_server: Server, set_up: Callable[..., None]
) -> Iterator[LoseReply]:
    """Return a function: Redis executes the next command, and its reply is lost."""
    with Proxy() as proxy:
        port = proxy.add_route("redis", redis_server.port)
        set_up(redis_url=f"redis://127.0.0.1:{port}/0")
        yield lambda: proxy.set("redis", "lose")


def test_a_reservation_whose_reply_is_lost_is_one_order_of_one_buyer(
    plaza: World, lose_next_reply: LoseReply
) -> None:
    voucher = sales.offer(stock=2)
    other = sales.offer(stock=1)
    place_order.place_order(other.id, 99)  # caches ids and the sale in this process
    place_order._find_sale(voucher.id)
    lose_next_reply()
    first, created = place_order.place_order(voucher.id, 1)
    second, _ = place_order.place_order(voucher.id, 2)
    assert second.id != first.id
    assert (first.status, created) == (PENDING, True)
    assert len(plaza.queues.messages[ORDERS]) == 3
    plaza.queues.drain()
    sales.check(voucher.id)
    assert sales.counts(voucher.id) == (0, 0, 2) == (sales.stock(voucher.id), 0, 2)
    for item, buyer in ((first, 1), (second, 2)):
        assert queries.read_order(item.id, buyer) == item._replace(status=SUCCESS)


def test_the_id_of_a_resent_command_is_not_used_again(
    plaza: World, lose_next_reply: LoseReply
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


def test_a_lease_whose_reply_is_lost_is_acquired(plaza: World, lose_next_reply: LoseReply) -> None:
    voucher = sales.offer()
    redis.execute("PING")
    lose_next_reply()
    assert redis_load.acquire_lease(voucher.id)
    assert not redis_load.acquire_lease(voucher.id)

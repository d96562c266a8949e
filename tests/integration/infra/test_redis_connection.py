"""The connection to a single Redis: replies in pieces, lost connections, timeouts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from local.stack.servers import Server
from plaza.infra.redis import connections, redis, resends
from plaza.infra.redis.errors import RedisDown
from tests.chaos.proxy import Proxy
from tests.support.plaza import World
from tests.support.servers import IS_CLUSTER

pytestmark = pytest.mark.skipif(IS_CLUSTER, reason="the proxy has one route to one Redis")

KEY = "{7}:count"
SetMode = Callable[[str], None]


@pytest.fixture
def set_mode(plaza: World, redis_server: Server, set_up: Callable[..., None]) -> Iterator[SetMode]:
    """``set_mode("lose")``: the proxy to Redis loses the reply of the next command."""
    with Proxy() as proxy:
        port = proxy.add_route("redis", redis_server.port)
        set_up(redis_url=f"redis://127.0.0.1:{port}/0", redis_timeout_s=0.3)
        redis.execute("SET", KEY, 0)
        yield lambda mode: proxy.set("redis", mode)


def test_replies_may_come_in_pieces(plaza: World) -> None:
    redis.execute("SET", KEY, "noodles")
    connections.client().connection._parser._buffer = bytearray(1)
    assert redis.pipeline([("GET", KEY), ("EXISTS", KEY)]) == ["noodles", 1]
    assert redis.execute("GET", KEY) == "noodles"


def test_a_command_on_a_connection_that_was_closed_while_idle_is_sent_again(
    plaza: World, redis_server: Server
) -> None:
    assert redis.execute("INCR", KEY) == 1
    before = resends.count_resends()
    closed = connections.client().connection._sock
    with connections.connect(redis_server.url, cluster=False) as other:
        other.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    assert redis.execute("INCR", KEY) == 2
    assert connections.client().connection._sock is not closed
    assert resends.count_resends() == before + 1


def test_a_command_whose_reply_was_lost_is_sent_again_once(set_mode: SetMode) -> None:
    before = resends.count_resends()
    set_mode("lose")
    assert redis.execute("INCR", KEY) == 2, "both copies ran"
    assert resends.count_resends() == before + 1


def test_a_command_without_a_reply_in_time_is_not_sent_again(set_mode: SetMode) -> None:
    before = resends.count_resends()
    set_mode("hang")
    with pytest.raises(RedisDown) as caught:
        redis.execute("INCR", KEY)
    assert caught.value.may_have_run
    assert str(caught.value) == "Redis is unavailable: TimeoutError"
    assert str(caught.value.__cause__) == "Timeout reading from socket"
    set_mode("pass")
    assert redis.execute("ECHO", "a") == "a", "a new connection, without the late reply"
    assert resends.count_resends() == before


def test_a_command_that_is_lost_twice_is_redis_down(set_mode: SetMode) -> None:
    before = resends.count_resends()
    set_mode("refuse")
    with pytest.raises(RedisDown, match="Redis is unavailable: ConnectionError"):
        redis.execute("INCR", KEY)
    assert resends.count_resends() == before + 1
    set_mode("pass")
    assert redis.execute("INCR", KEY) == 1

"""Claims whose first reply is lost: the client sends the command again, and it succeeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest
from redis._parsers.hiredis import _HiredisParser
from redis.exceptions import ConnectionError as RedisConnectionError

from plaza.commerce.flash_sales import redis_load
from plaza.infra.derived import cache
from plaza.infra.redis import locks, redis
from plaza.social.recommendations import redis_store as recommendations_store
from tests.support.plaza import World

KEY = "{1}:thing"


@contextmanager
def lost_reply(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Break the connection after the next command has run, before its reply is read."""
    redis.execute("PING")
    lost: list[bool] = []
    receive = cast(Any, _HiredisParser).read_from_socket

    def lose_one(self: Any, *args: Any, **options: Any) -> Any:
        received = receive(self, *args, **options)
        if not lost:
            lost.append(True)
            raise RedisConnectionError("Connection closed by server.")
        return received

    with monkeypatch.context() as patch:
        patch.setattr(_HiredisParser, "read_from_socket", lose_one)
        yield
    assert lost


CLAIMS: dict[str, Callable[[], bool]] = {
    "lock": lambda: locks.try_lock(KEY, 5) is not None,
    "rebuild of a value": lambda: cache.claim_rebuilds([KEY]) == [True],
    "loading of a sale": lambda: redis_load.acquire_lease(7),
    "rebuild of a list": lambda: recommendations_store.read_list(7).needs_rebuild,
}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_whose_reply_was_lost_succeeds(
    plaza: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    CLAIMS[name]()  # Redis caches the scripts
    redis.execute("FLUSHALL")
    with lost_reply(monkeypatch):
        assert CLAIMS[name]()
    assert not CLAIMS[name](), "a second claim is refused"


def test_a_lock_whose_reply_was_lost_can_be_released(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lost_reply(monkeypatch):
        lock = locks.try_lock(KEY, 5)
    assert lock
    assert locks.unlock(lock)
    assert not locks.unlock(lock), "it was released"
    assert locks.try_lock(KEY, 5)

"""Reads of hot keys from a replica: bounded in age, and answered by the master without it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from bench.round_trips import count_round_trips
from local.stack.processes import wait_until
from local.stack.servers import Server, connect_redis, prepare_redis, run_server
from plaza.core.reactions import LIKE, queries, react, redis_queries
from plaza.core.reactions.hot_totals import hot_totals
from plaza.infra.redis import connections, redis, replicas
from plaza.infra.redis.hot_keys import sampler
from plaza.infra.runtime import clock
from tests.support.plaza import World, forget
from tests.support.servers import IS_CLUSTER, read_redis_access
from tests.support.stores import POST

pytestmark = pytest.mark.skipif(IS_CLUSTER, reason="tests/cluster has them")
KEY = "{7}:a"
USER = f"user plaza {read_redis_access()} >plaza +flushall +replicaof +config|set"


class Replica:
    """A Redis that replicates another one, and the commands that it received."""

    def __init__(self, server: Server, client: Any) -> None:
        self.server, self._client = server, client

    def follow(self, url: str) -> None:
        address = urlsplit(url)
        self._client.execute_command("CONFIG", "SET", "masteruser", "plaza")
        self._client.execute_command("CONFIG", "SET", "masterauth", "plaza")
        self._client.execute_command("REPLICAOF", address.hostname, str(address.port))

    def disconnect(self) -> None:
        """Replicate from an address at which nothing listens: the data stays as it is."""
        self._client.execute_command("REPLICAOF", "127.0.0.1", "1")

    def get(self, key: str) -> Any:
        return self._client.get(key)


@pytest.fixture
def replica(plaza: World, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Replica]:
    """A master and a replica of this test, both with the rights that functions have."""
    with contextlib.ExitStack() as ends:
        # The replica logs in as a user that may replicate; functions use the rules of production.
        rules = [USER + " +psync +replconf +ping", "repl-diskless-sync-delay 0"]
        master = ends.enter_context(run_server(prepare_redis(tmp_path / "master", settings=rules)))
        server = ends.enter_context(run_server(prepare_redis(tmp_path / "replica", settings=rules)))
        client = ends.enter_context(connect_redis(server.url, cluster=False))
        monkeypatch.setenv("PLAZA_REDIS_URL", master.url)
        monkeypatch.setenv("PLAZA_REDIS_READER_URL", server.url)
        monkeypatch.setenv("PLAZA_REDIS_TIMEOUT_S", "0.5")
        forget()
        redis.execute("SET", KEY, "1")
        made = Replica(server, client)
        made.follow(master.url)
        assert wait_until(lambda: made.get(KEY) == "1", 10)
        connections.forget_client()  # a first replica begins another term
        yield made
        forget()


def read() -> Any:
    return replicas.run_all((), [("GET", KEY)])[0]


def read_from_replica(replica: Replica) -> None:
    """Read until the replica answers."""
    before = sampler.spared.total()

    def is_spared() -> bool:
        read()
        return sampler.spared.total() > before

    assert wait_until(is_spared, 10, step_s=0.02)


@pytest.fixture(autouse=True)
def every_read_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "_gap", lambda: 1)


def test_a_replica_with_the_heartbeat_of_the_master_is_read(replica: Replica) -> None:
    read_from_replica(replica)
    with count_round_trips() as sent:
        assert read() == "1"
    assert sent.sent == 1
    assert sampler.spared[f"replica {KEY}"] >= 1


def test_a_replica_that_is_behind_is_not_read(replica: Replica) -> None:
    read_from_replica(replica)
    replica.disconnect()
    redis.execute("SET", KEY, "2")
    assert replica.get(KEY) == "1"
    assert wait_until(lambda: read() == "2", 2 * replicas.MAX_AGE_S + 1, step_s=0.02)
    for _ in range(20):
        assert read() == "2"


def test_a_value_is_never_older_than_the_limit(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a replica that stops replicating and a clock that stands just before the limit."""
    read_from_replica(replica)
    replica.disconnect()
    redis.execute("SET", KEY, "2")
    now_s = clock.monotonic_s()
    monkeypatch.setattr(clock, "monotonic_s", lambda: now_s + replicas.MAX_AGE_S)
    assert read() == "2", "the heartbeat is too old: the master is read"
    assert read() == "2", "the replica lacks the new heartbeat"


def test_without_the_replica_the_master_answers(
    replica: Replica, capsys: pytest.CaptureFixture[str]
) -> None:
    read_from_replica(replica)
    replica.server.kill()
    for _ in range(5):
        assert read() == "1"
    assert capsys.readouterr().out.count('"event":"replica_failed"') == 1


def test_a_hanging_replica_costs_one_timeout(replica: Replica) -> None:
    read_from_replica(replica)
    replica.server.pause()
    try:
        began_s = clock.monotonic_s()
        for _ in range(50):
            assert read() == "1"
        assert clock.monotonic_s() - began_s < 2
    finally:
        replica.server.resume()


@pytest.mark.parametrize("latest", [True, False])
def test_totals_and_likers_are_read_from_the_replica(
    plaza: World, replica: Replica, latest: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    plaza.add(POST)
    for actor in (5, 6):
        react.react(LIKE, POST, actor, True)
    plaza.queues.drain()
    monkeypatch.setattr(hot_totals, "_hot_per_s", 10**9)

    def is_spared(read: Callable[[], Any]) -> bool:
        before = sampler.spared.total()
        read()
        return sampler.spared.total() > before

    def read_totals() -> None:
        [result], exact = queries.read_counts([(LIKE, POST)], None)
        assert (result.total, exact) == (2, True)

    def read_likers() -> None:
        page = redis_queries.read_page(LIKE, POST, None, latest, 10, replicas.run_all)
        assert page is None or sorted(r.actor_id for r in page[1]) == [5, 6]

    for item in (read_totals, read_likers):
        assert wait_until(lambda item=item: is_spared(item), 10, step_s=0.02)  # type: ignore[misc]


def test_a_caller_with_a_session_reads_the_master(plaza: World, replica: Replica) -> None:
    plaza.add(POST)
    replica.disconnect()
    for actor in range(1, 30):
        react.react(LIKE, POST, actor, True)
        [result], _ = queries.read_counts([(LIKE, POST)], actor)
        assert (result.total, result.viewer_state) == (actor, True)


def test_a_target_that_only_the_master_has_is_read_there(
    plaza: World, replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a replica with the newest heartbeat that lost its keys, as after an election."""
    plaza.add(POST)
    react.react(LIKE, POST, 5, True)
    read_from_replica(replica)
    monkeypatch.setattr(
        redis, "run_all_on_replicas", lambda first, calls, _: [10**9] * len(first) + [[False]]
    )
    [result] = redis_queries.read_all([(LIKE, POST)], None, replicas.run_all)
    assert result is not None
    assert result.total == 1

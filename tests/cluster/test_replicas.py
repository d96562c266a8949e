"""Anonymous reads of hot keys from the replicas of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from local.stack.cluster import Cluster, connect_node
from local.stack.processes import wait_until
from local.stack.servers import Server
from plaza.core.reactions import LIKE, queries, react
from plaza.core.reactions.hot_totals import hot_totals
from plaza.infra.redis import redis, replicas
from plaza.infra.redis.hot_keys import sampler
from tests.cluster.conftest import POSTS
from tests.support.plaza import World, forget

KEYS = [f"{{{shard}}}:a" for shard in range(12)]  # on all masters


@pytest.fixture(autouse=True)
def reader(plaza: World, nodes: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this process read from replicas, and count each read."""
    monkeypatch.setenv("PLAZA_REDIS_READER_URL", nodes.url)
    monkeypatch.setattr(sampler, "_gap", lambda: 1)
    forget()
    yield
    forget()


def read() -> list[Any]:
    return replicas.run_all((), [("GET", key) for key in KEYS])


def read_from_replicas(requested: list[str]) -> None:
    """Read until replicas answer; every answer must be ``requested``."""
    before = sampler.spared.total()

    def is_spared() -> bool:
        assert read() == requested
        return sampler.spared.total() > before

    assert wait_until(is_spared, 20, step_s=0.02)


def count_calls(node: Server, name: str) -> int:
    with connect_node(node) as client:
        info = client.info("commandstats").get(f"cmdstat_{name}")
    return int(info["calls"]) if info else 0


def test_replicas_answer_reads_of_all_slots_and_masters_only_heartbeats(nodes: Cluster) -> None:
    redis.pipeline([("SET", key, "1") for key in KEYS])
    read_from_replicas(["1"] * len(KEYS))
    masters = nodes.masters()
    of_replicas = [nodes.replica_of(master) for master in masters]
    before = [count_calls(node, "get") for node in of_replicas]
    read_from_replicas(["1"] * len(KEYS))
    assert all(count_calls(n, "get") > calls for n, calls in zip(of_replicas, before, strict=True))


def test_totals_are_read_from_replicas_by_scripts_that_none_of_them_knew(
    plaza: World, nodes: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    plaza.add(*POSTS)
    for post in POSTS:
        react.react(LIKE, post, 7, True)
    plaza.queues.drain()
    monkeypatch.setattr(hot_totals, "_hot_per_s", 10**9)
    of_replicas = [nodes.replica_of(master) for master in nodes.masters()]

    def have_served() -> bool:
        result, exact = queries.read_counts([(LIKE, post) for post in POSTS], None)
        assert ([count.total for count in result], exact) == ([1] * len(POSTS), True)
        return all(count_calls(node, "evalsha_ro") for node in of_replicas)

    assert wait_until(have_served, 20, step_s=0.02)


@pytest.mark.parametrize("how", ["kill", "pause"])
def test_the_masters_answer_without_a_replica(nodes: Cluster, how: str) -> None:
    redis.pipeline([("SET", key, "1") for key in KEYS])
    read_from_replicas(["1"] * len(KEYS))
    getattr(nodes.replica_of(nodes.master_of(KEYS[0])), how)()
    redis.pipeline([("SET", key, "2") for key in KEYS])
    assert wait_until(lambda: read() == ["2"] * len(KEYS), 2 * replicas.MAX_AGE_S + 1)
    for _ in range(20):
        assert read() == ["2"] * len(KEYS)


def test_reads_go_on_after_a_replica_was_promoted(nodes: Cluster) -> None:
    redis.pipeline([("SET", key, "1") for key in KEYS])
    read_from_replicas(["1"] * len(KEYS))
    nodes.fail_over(KEYS[0])
    redis.pipeline([("SET", key, "2") for key in KEYS])
    assert wait_until(lambda: read() == ["2"] * len(KEYS), 2 * replicas.MAX_AGE_S + 1)
    read_from_replicas(["2"] * len(KEYS))

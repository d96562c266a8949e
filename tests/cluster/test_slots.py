"""Keys over all slots: one round trip a node; unknown scripts, moving slots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redis.exceptions import ResponseError

from bench.round_trips import count_round_trips
from local.audit.compare import AuditReport
from local.stack.cluster import Cluster, connect_node
from plaza.core.reactions import LIKE, Target, queries, react
from plaza.infra.redis import connections, redis
from plaza.infra.redis.commands import Call
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.scripts import Script, load_script
from plaza.infra.redis.shards import SHARDS
from tests.cluster.conftest import POSTS, Traffic, meta_key, migrate
from tests.support.keyspace import find_keys
from tests.support.plaza import World

TAGS = [f"{{{shard}}}" for shard in range(SHARDS)]


@pytest.fixture
def put_and_get(tmp_path: Any) -> Script:
    """Return a script that no node has loaded."""
    path = tmp_path / "put_and_get.lua"
    path.write_text(
        "redis.call('SET', KEYS[1], ARGV[1])\n"
        f"return redis.call('GET', KEYS[1]) .. '{tmp_path.name}'\n"
    )
    return load_script(path)


def test_pipeline_over_all_shards_is_one_round_trip_with_ordered_replies(
    plaza: World, put_and_get: Script
) -> None:
    calls = [Call(put_and_get, (f"{tag}:a",), (tag,)) for tag in TAGS]
    commands = [("GET", f"{tag}:a") for tag in reversed(TAGS)]
    redis.pipeline(commands)  # every node has a connection
    with count_round_trips() as first:
        answers = redis.run_all(calls, commands)
    assert [answer[: answer.index("}") + 1] for answer in answers[:SHARDS]] == TAGS
    assert first.sent == 2, "no node knew the script"
    with count_round_trips() as second:
        answers = redis.run_all(calls, commands)
    assert answers[SHARDS:] == [*reversed(TAGS)]
    assert second.sent == 1
    assert len(find_keys("*:a")) == SHARDS


def test_script_missing_on_one_node_costs_one_more_round_trip(
    plaza: World, nodes: Cluster, put_and_get: Script
) -> None:
    calls = [Call(put_and_get, (f"{tag}:a",), (tag,)) for tag in TAGS]
    redis.run_all(calls)
    with connect_node(nodes.masters()[1]) as client:
        client.execute_command("SCRIPT", "FLUSH")
    with count_round_trips() as counter:
        redis.run_all(calls)
    assert counter.sent == 2
    with connect_node(nodes.masters()[0]) as client:
        client.execute_command("SCRIPT", "FLUSH")
    tag = next(tag for tag in TAGS if nodes.master_of(tag) == nodes.masters()[0])
    assert redis.run(put_and_get, (f"{tag}:a",), ("x",)).startswith("x")


def test_command_without_a_key_goes_to_all_nodes_with_pending_hot_keys(
    plaza: World, put_and_get: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis.run_all([Call(put_and_get, (f"{tag}:a",), (tag,)) for tag in TAGS])
    hot = [("ZINCRBY", "{1}:hot", 1, "a")]
    monkeypatch.setattr("plaza.infra.redis.redis.sampler.sample", lambda commands: hot)
    redis.execute("FLUSHALL")
    assert find_keys("*:a") == []


def test_script_with_keys_of_two_slots_raises_a_defect(plaza: World, put_and_get: Script) -> None:
    for _ in range(10):
        with pytest.raises(ResponseError, match="slot"):
            redis.run(put_and_get, ("{1}:a", "{2}:a"), ("x",))
    assert connections.REDIS.breaker.current_state == "closed"


def test_reactions_to_targets_of_all_shards_are_saved_and_read(
    plaza: World, quiet: Callable[[], AuditReport]
) -> None:
    by_shard: dict[str, Target] = {}
    number = 0
    while len(by_shard) < SHARDS:
        number += 1
        target = Target("comment", number)
        by_shard.setdefault(meta_key(target).partition("}")[0], target)
    targets = list(by_shard.values())
    plaza.add(*targets)
    hundreds = [targets[i : i + 100] for i in range(0, SHARDS, 100)]
    for part in hundreds:
        queries.read_counts([(LIKE, target) for target in part], 7)
    with count_round_trips() as counter:
        for part in hundreds:
            queries.read_counts([(LIKE, target) for target in part], 7)
    assert counter.sent == len(hundreds), "one round trip a page"
    for target in targets:
        assert react.react(LIKE, target, 7, True).changed
    report = quiet()
    assert (report.drift, report.pending, report.outbox_index, report.persisted) == (
        0,
        0,
        0,
        SHARDS,
    )


@pytest.mark.parametrize("all_keys", [False, True])
def test_likes_continue_while_their_slot_moves(
    traffic: Traffic, nodes: Cluster, quiet: Callable[[], AuditReport], all_keys: bool
) -> None:
    post = POSTS[0]
    end = migrate(nodes, meta_key(post), all_keys=all_keys)
    during = [traffic.like(post) for _ in range(3)]
    assert set(during) <= {200, 202}, "a slot whose keys are on two nodes may answer 202 only"
    end()
    connections.REDIS.breaker.close()
    assert traffic.like(post) == 200, "the answer named the new master"
    traffic.run_until_normal()
    report = quiet()
    assert report.clean, report.differences


def test_first_request_after_a_failover_finds_the_new_master(
    traffic: Traffic, nodes: Cluster
) -> None:
    nodes.fail_over(meta_key(POSTS[0]))
    with count_round_trips() as counter:
        assert traffic.like(POSTS[0]) == 200
    # MOVED, the topology, a connection, hydration of the target, the scripts as text.
    assert counter.sent <= 16
    assert [traffic.like(post) for post in POSTS] == [200] * len(POSTS)
    with count_round_trips() as counter:
        assert [traffic.like(post) for post in POSTS] == [200] * len(POSTS)
    assert counter.sent <= len(POSTS) + 1


def test_pipeline_with_a_dead_master_fails_as_a_whole_and_quickly(
    traffic: Traffic, nodes: Cluster
) -> None:
    nodes.configure("cluster-node-timeout", 60_000)
    try:
        nodes.master_of(meta_key(POSTS[0])).pause()
        with count_round_trips() as counter, pytest.raises(RedisDown, match="Timeout"):
            redis.pipeline([("GET", f"{tag}:a") for tag in TAGS])
        assert counter.sent <= 3, "one trip, and one for the topology, by a new connection maybe"
    finally:
        nodes.resume()
        nodes.configure("cluster-node-timeout", 1_500)

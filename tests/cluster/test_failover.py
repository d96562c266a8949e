"""Masters that fail over or die in the middle of traffic: who waits, for how long, what is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import redis as redis_py
from redis.cluster import ClusterNode

from local.cluster import Cluster, connect_node
from local.truth import Truth
from plaza import reactions
from plaza.infra import redis
from plaza.infra.redis import RedisDown
from plaza.reactions import LIKE, failovers
from tests.cluster.conftest import (
    NODE_TIMEOUT_MS,
    POSTS,
    REDIS_TIMEOUT_S,
    Traffic,
    events,
    meta_key,
    rows,
)
from tests.plaza import World

# An election takes up to a second after the node timeout; the rest is a machine that is busy.
LONGEST_GAP_S = NODE_TIMEOUT_MS / 1000 + 1 + 12
# A node that hangs costs one timeout, asking another for the topology is in the noise.
LONGEST_REQUEST_S = REDIS_TIMEOUT_S + 1.5

Tell = Callable[[str, object], None]


def tell_figures(tell: Tell, traffic: Traffic, lost: int) -> None:
    tell("answers", dict(sorted(traffic.statuses.items())))
    tell("longest request", f"{traffic.longest_s:.2f} s")
    tell("longest time without a 200 of a post", f"{traffic.gap_s:.2f} s")
    tell("acknowledged", len(traffic.acknowledged))
    tell("lost", lost)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["fail over", "die", "hang"])
def test_likes_go_on_when_a_master_ends(
    traffic: Traffic,
    nodes: Cluster,
    quiet: Callable[[], Truth],
    record_property: Tell,
    how: str,
) -> None:
    traffic.go_on(0.5)
    key = meta_key(POSTS[0])
    master = nodes.master_of(key)
    replica = nodes.replica_of(master)
    match how:
        case "fail over":
            with connect_node(replica) as client:
                client.execute_command("CLUSTER", "FAILOVER")
        case "die":
            master.kill()
        case "hang":
            master.pause()
    traffic.go_on(NODE_TIMEOUT_MS / 1000 + 2)
    nodes.wait_for_master(key, replica)
    traffic.go_on_until_well()
    if how == "hang":
        master.resume()  # it still thinks that it is the master, for a moment
        traffic.go_on(1)
        traffic.go_on_until_well()

    assert set(traffic.statuses) <= {200, 202, 503}, "never a 500"
    assert traffic.longest_s < LONGEST_REQUEST_S
    assert traffic.gap_s < LONGEST_GAP_S
    truth = quiet()
    lost = len(traffic.acknowledged - rows())
    tell_figures(record_property, traffic, lost)
    assert lost == 0, "the facts were on the queue"
    assert truth.clean, truth.differences


def test_a_like_that_the_queue_has_outlives_a_master_that_dies_before_it_replicates(
    traffic: Traffic, nodes: Cluster, plaza: World, quiet: Callable[[], Truth]
) -> None:
    assert quiet().clean
    post = POSTS[0]
    before = reactions.count([(LIKE, post)], None)[0][0][0]
    with nodes.losing_the_newest(meta_key(post)):
        assert [traffic.like(post) for _ in range(5)] == [200] * 5
    traffic.go_on_until_well()
    truth = quiet()
    assert traffic.acknowledged <= rows()
    assert truth.clean, truth.differences
    assert reactions.count([(LIKE, post)], None)[0][0][0] >= before + 6


def test_what_was_saved_and_told_to_a_master_that_died_unreplicated_is_read_again(
    traffic: Traffic, nodes: Cluster, plaza: World, quiet: Callable[[], Truth]
) -> None:
    """On no queue and in no outbox any more, and the new master has never heard of it: what it has
    of the target was loaded in another run of another node."""
    assert quiet().clean
    assert [reactions.settle_after_failover() for _ in range(2)] == [0, 0]
    post = POSTS[0]
    before = reactions.count([(LIKE, post)], None)[0][0].total
    with nodes.losing_the_newest(meta_key(post)):
        assert [traffic.like(post) for _ in range(5)] == [200] * 5
        plaza.queues.drain()
    traffic.go_on_until_well()
    assert reactions.count([(LIKE, post)], None)[0][0].total >= before + 5
    assert reactions.settle_after_failover() >= 5
    truth = quiet()
    assert truth.clean, truth.differences
    assert traffic.acknowledged <= rows()
    assert reactions.settle_after_failover() == 0


def test_a_long_log_is_settled_again_by_several_runs(
    traffic: Traffic, nodes: Cluster, quiet: Callable[[], Truth], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failovers, "_PAGE", 10)
    assert reactions.settle_after_failover() == 0
    traffic.go_on_until_well()
    quiet()
    nodes.fail_over(meta_key(POSTS[0]))
    asked = [reactions.settle_after_failover(most_s=0) for _ in range(8)]
    assert asked[0] == 10
    assert sum(asked) == len(traffic.acknowledged)
    assert asked[-1] == 0
    assert quiet().clean


def test_a_like_that_only_mysql_has_outlives_a_master_that_dies_before_it_replicates(
    traffic: Traffic,
    nodes: Cluster,
    plaza: World,
    quiet: Callable[[], Truth],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """SQS is away, so MySQL has the second copy, and the master dies before it replicates."""
    assert quiet().clean
    post = POSTS[0]
    with nodes.losing_the_newest(meta_key(post)):
        plaza.queues.away = True
        assert [traffic.like(post) for _ in range(5)] == [200] * 5
        plaza.queues.away = False
    assert len(events(capsys.readouterr().out, "publish_postponed")) == 5
    traffic.go_on_until_well()
    reactions.sweep_outbox()
    truth = quiet()
    assert truth.clean, truth.differences
    assert traffic.acknowledged <= rows()


def test_an_unlike_after_a_failover_to_a_slow_clock_may_have_to_be_said_again(
    traffic: Traffic, nodes: Cluster, plaza: World, quiet: Callable[[], Truth]
) -> None:
    """The like's version was an hour ahead and died with its master, the queue has it."""
    assert quiet().clean
    post, who = POSTS[0], 7
    with nodes.losing_the_newest(meta_key(post)):
        assert reactions.react(LIKE, post, who, True).changed
        [body] = plaza.queues.take("reactions")
    ver_us = reactions.ReactionEvent.from_json(body).stamped
    ahead_us = ver_us + 3_600_000_000
    plaza.queues.send("reactions", body.replace(str(ver_us), str(ahead_us)))
    deadline_s = time.monotonic() + 10
    while not (outcome := reactions.react(LIKE, post, who, False)).exact:
        assert time.monotonic() < deadline_s
    assert (outcome.on, outcome.changed) == (False, False), "nobody knows of the like yet"
    assert reactions.react(LIKE, post, who, True).changed
    assert reactions.react(LIKE, post, who, False).changed
    truth = quiet()
    assert truth.clean, truth.differences
    assert (post.id, who) in rows(), "of two versions the later stands, however it came by its time"

    again = reactions.react(LIKE, post, who, False)
    assert (again.changed, again.exact) == (True, True)
    [body] = plaza.queues.messages["reactions"]
    assert reactions.ReactionEvent.from_json(body).stamped > ahead_us, "later than all it knows"
    assert quiet().clean
    assert (post.id, who) not in rows()


def test_a_master_without_enough_replicas_refuses_and_likes_are_provisional(
    traffic: Traffic, nodes: Cluster, quiet: Callable[[], Truth]
) -> None:
    """``min-replicas-to-write 1``: what is not replicated is not taken."""
    master = nodes.master_of(meta_key(POSTS[0]))
    replica = nodes.replica_of(master)
    nodes.configure("min-replicas-to-write", 1)
    try:
        replica.kill()
        deadline_s = time.monotonic() + 10
        while traffic.like(POSTS[0]) != 202:
            assert time.monotonic() < deadline_s
        assert set(traffic.statuses) <= {200, 202}
    finally:
        nodes.configure("min-replicas-to-write", 0)
        nodes.start()
    redis.breaker.close()
    traffic.go_on_until_well()
    assert quiet().clean
    assert traffic.acknowledged <= rows()


def test_while_a_master_is_away_the_others_work(
    traffic: Traffic, nodes: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes.configure("cluster-node-timeout", 60_000)  # nobody takes over
    try:
        master = nodes.master_of(meta_key(POSTS[0]))
        there = [post for post in POSTS if nodes.master_of(meta_key(post)) == master]
        elsewhere = [post for post in POSTS if post not in there]
        master.kill()
        for _ in range(3):
            redis.breaker.close()
            assert {traffic.like(post) for post in there[:3]} <= {202, 503}
            assert [traffic.like(post) for post in elsewhere] == [200] * len(elsewhere)
        redis.breaker.close()
        assert reactions.count([(LIKE, post) for post in elsewhere], None)[1], "exact"
        with pytest.raises(RedisDown):
            redis.execute("HGET", meta_key(there[0]), "base")
    finally:
        nodes.configure("cluster-node-timeout", NODE_TIMEOUT_MS)


def test_a_process_that_knows_only_dead_nodes_asks_those_that_the_url_names(
    traffic: Traffic,
) -> None:
    manager: Any = redis.client().nodes_manager
    gone = ClusterNode("127.0.0.1", 1, redis_connection=redis_py.Redis(port=1))
    # As if all of them had been replaced while this process was frozen.
    manager.nodes_cache = {gone.name: gone}
    manager.slots_cache = {slot: [gone] for slot in range(16_384)}
    assert traffic.like(POSTS[0]) == 202
    assert traffic.like(POSTS[0]) == 200

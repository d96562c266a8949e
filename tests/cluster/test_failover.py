"""Masters that fail over or die during traffic: unavailable time and losses."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from typing import Any

import pytest
import redis as redis_py
from redis.cluster import ClusterNode

from local.audit.compare import AuditReport
from local.stack.cluster import Cluster, connect_node
from local.stack.servers import Server
from plaza.commerce.checkins import daily_checkin
from plaza.commerce.checkins.redis_store import CheckInKeys
from plaza.commerce.flash_sales import place_order, recover_orders, redis_keys
from plaza.core.reactions import LIKE, failover_recovery, queries, react, sweep
from plaza.core.reactions.queues import REACTIONS
from plaza.infra.mysql import mysql
from plaza.infra.redis import connections, redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime.errors import Unavailable
from tests.cluster.conftest import (
    NODE_TIMEOUT_MS,
    POSTS,
    REDIS_TIMEOUT_S,
    Pair,
    Toggles,
    Traffic,
    events,
    meta_key,
    rows,
)
from tests.support import sales
from tests.support.plaza import World

# An election takes up to a second after the node timeout; the rest allows for a busy machine.
LONGEST_GAP_S = NODE_TIMEOUT_MS / 1000 + 1 + 12
# A hanging node costs one timeout; reading the topology from another node is negligible.
LONGEST_REQUEST_S = REDIS_TIMEOUT_S + 1.5

RecordFigure = Callable[[str, object], None]


def record_figures(record: RecordFigure, traffic: Traffic, lost: int) -> None:
    record("answers", dict(sorted(traffic.statuses.items())))
    record("longest request", f"{traffic.longest_s:.2f} s")
    record("longest time without a 200 of a post", f"{traffic.gap_s:.2f} s")
    record("acknowledged", len(traffic.acknowledged))
    record("lost", lost)


def stop_master(nodes: Cluster, key: str, how: str) -> tuple[Server, Server]:
    """Make the master of ``key`` fail over, die or hang. Yields the old and the new master."""
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
    return master, replica


@pytest.mark.parametrize("how", ["fail over", "die", "hang"])
def test_likes_continue_after_a_master_fails(
    traffic: Traffic,
    nodes: Cluster,
    quiet: Callable[[], AuditReport],
    record_property: RecordFigure,
    how: str,
) -> None:
    traffic.run_for(0.5)
    key = meta_key(POSTS[0])
    master, replica = stop_master(nodes, key, how)
    traffic.run_for(NODE_TIMEOUT_MS / 1000 + 2)
    nodes.wait_for_master(key, replica)
    traffic.run_until_normal()
    if how == "hang":
        master.resume()  # it acts as a master for a moment
        traffic.run_for(1)
        traffic.run_until_normal()

    assert set(traffic.statuses) <= {200, 202, 503}, "never a 500"
    assert traffic.longest_s < LONGEST_REQUEST_S
    assert traffic.gap_s < LONGEST_GAP_S
    report = quiet()
    lost = len(traffic.acknowledged - rows())
    record_figures(record_property, traffic, lost)
    assert lost == 0, "the facts were on the queue"
    assert report.clean, report.differences


@pytest.mark.parametrize("how", ["fail over", "die", "hang"])
def test_last_answered_state_remains_after_a_master_fails(
    toggles: Toggles,
    nodes: Cluster,
    quiet: Callable[[], AuditReport],
    record_property: RecordFigure,
    how: str,
) -> None:
    toggles.run_for(0.5)
    key = meta_key(POSTS[0])
    master, replica = stop_master(nodes, key, how)
    toggles.run_for(NODE_TIMEOUT_MS / 1000 + 2)
    nodes.wait_for_master(key, replica)
    connections.REDIS.breaker.close()
    toggles.run_for(1)
    if how == "hang":
        master.resume()  # it acts as a master for a moment
        toggles.run_for(1)
    report = quiet()
    statuses = Counter(
        request.status for ledger in toggles.ledgers.values() for request in ledger.requests
    )
    assert set(statuses) <= {200, 202, 503}, "never a 500"
    assert toggles.find_violations() == []
    assert report.clean, report.differences


def toggle_until_answered(toggles: Toggles, pair: Pair, on: bool) -> None:
    deadline_s = time.monotonic() + 30
    while toggles.toggle(pair, on=on) != 200:
        assert time.monotonic() < deadline_s


def test_unlike_wins_over_an_earlier_like_that_is_only_on_the_queue(
    toggles: Toggles, nodes: Cluster, quiet: Callable[[], AuditReport]
) -> None:
    """The master dies before it replicates the like, and the new one answers the unlike."""
    pair = next(iter(toggles.ledgers))
    assert toggles.toggle(pair, on=False) == 200
    assert quiet().clean
    with nodes.lose_unreplicated_writes(meta_key(pair[1])):
        assert toggles.toggle(pair, on=True) == 200
    toggle_until_answered(toggles, pair, on=False)
    report = quiet()
    assert report.clean, report.differences
    # The unlike may be answered as unchanged: only the queue has the like.
    toggles.ledgers[pair].wrong.clear()
    assert toggles.find_violations() == []


def test_answered_unlike_wins_over_an_earlier_provisional_like(
    toggles: Toggles, nodes: Cluster, quiet: Callable[[], AuditReport]
) -> None:
    """202 without the master, then the opposite at the new one, then the 202 is saved."""
    pair = next(iter(toggles.ledgers))
    assert toggles.toggle(pair, on=False) == 200
    assert quiet().clean
    key = meta_key(pair[1])
    _, replica = stop_master(nodes, key, "die")
    assert toggles.toggle(pair, on=True) == 202
    nodes.wait_for_master(key, replica)
    connections.REDIS.breaker.close()
    toggle_until_answered(toggles, pair, on=False)
    toggles.read_state(pair)
    report = quiet()
    assert report.clean, report.differences
    assert toggles.find_violations() == []


def test_queued_like_survives_a_master_that_dies_before_replication(
    traffic: Traffic, nodes: Cluster, plaza: World, quiet: Callable[[], AuditReport]
) -> None:
    assert quiet().clean
    post = POSTS[0]
    before = queries.read_counts([(LIKE, post)], None)[0][0][0]
    with nodes.lose_unreplicated_writes(meta_key(post)):
        assert [traffic.like(post) for _ in range(5)] == [200] * 5
    traffic.run_until_normal()
    report = quiet()
    assert traffic.acknowledged <= rows()
    assert report.clean, report.differences
    assert queries.read_counts([(LIKE, post)], None)[0][0][0] >= before + 6


def test_target_is_reloaded_after_a_saved_commit_was_not_replicated(
    traffic: Traffic, nodes: Cluster, plaza: World, quiet: Callable[[], AuditReport]
) -> None:
    """The commit is on no queue and in no outbox, and the new master never received it. Its copy of
    the target was loaded in another term."""
    assert quiet().clean
    assert [failover_recovery.acknowledge_after_failover() for _ in range(2)] == [0, 0]
    post = POSTS[0]
    before = queries.read_counts([(LIKE, post)], None)[0][0].total
    with nodes.lose_unreplicated_writes(meta_key(post)):
        assert [traffic.like(post) for _ in range(5)] == [200] * 5
        plaza.queues.drain()
    traffic.run_until_normal()
    assert queries.read_counts([(LIKE, post)], None)[0][0].total >= before + 5
    assert failover_recovery.acknowledge_after_failover() >= 5
    report = quiet()
    assert report.clean, report.differences
    assert traffic.acknowledged <= rows()
    assert failover_recovery.acknowledge_after_failover() == 0


def test_long_log_is_acknowledged_again_in_several_runs(
    traffic: Traffic,
    nodes: Cluster,
    quiet: Callable[[], AuditReport],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(failover_recovery, "_PAGE", 10)
    assert failover_recovery.acknowledge_after_failover() == 0
    traffic.run_until_normal()
    quiet()
    nodes.fail_over(meta_key(POSTS[0]))
    asked = [failover_recovery.acknowledge_after_failover(max_s=0) for _ in range(8)]
    assert asked[0] == 10
    assert sum(asked) == len(traffic.acknowledged)
    assert asked[-1] == 0
    assert quiet().clean


def test_like_refused_by_sqs_survives_a_master_that_dies_before_replication(
    traffic: Traffic,
    nodes: Cluster,
    plaza: World,
    quiet: Callable[[], AuditReport],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An answer 200 means two copies; otherwise the answer is 202 or 503."""
    assert quiet().clean
    post = POSTS[0]
    with nodes.lose_unreplicated_writes(meta_key(post)):
        plaza.queues.away = True
        statuses = [traffic.like(post) for _ in range(5)]
        plaza.queues.away = False
    assert set(statuses) <= {200, 202, 503}
    assert events(capsys.readouterr().out, "message_unsent"), "an event is logged"
    traffic.run_until_normal()
    sweep.sweep_outbox()
    report = quiet()
    assert report.clean, report.differences
    lost = traffic.acknowledged - rows()
    assert lost == set()


def test_order_refused_by_sqs_survives_a_master_that_dies_before_replication(
    traffic: Traffic, nodes: Cluster, plaza: World, quiet: Callable[[], AuditReport]
) -> None:
    voucher = sales.offer(stock=10)
    assert place_order.place_order(voucher.id, 700)[1]
    assert quiet().clean
    promised: dict[int, int] = {}
    with nodes.lose_unreplicated_writes(redis_keys.state_key(voucher.id)):
        plaza.queues.away = True
        for buyer in range(701, 706):
            with suppress(Unavailable):
                promised[place_order.place_order(voucher.id, buyer)[0].id] = buyer
        plaza.queues.away = False
    connections.REDIS.breaker.close()
    quiet()
    deadline_s = time.monotonic() + 30
    while True:  # the sale stays closed until its queue is empty
        with suppress(Unavailable):
            place_order.place_order(voucher.id, 706)
            break
        assert time.monotonic() < deadline_s
    recover_orders.recover_orders()
    plaza.queues.drain()
    decided = sales.rows(voucher.id)
    assert {order: decided[order].buyer_id for order in promised if order in decided} == promised


def test_check_in_refused_by_sqs_survives_a_master_that_dies_before_replication(
    traffic: Traffic, nodes: Cluster, plaza: World, quiet: Callable[[], AuditReport]
) -> None:
    user_id = 711
    mysql.write("INSERT INTO user (id, nickname) VALUES (%s, 'ada')", (user_id,))
    daily_checkin.read_month(user_id, date(2026, 1, 1))
    with nodes.lose_unreplicated_writes(CheckInKeys(user_id).head):
        plaza.queues.away = True
        exact = False
        with suppress(Unavailable):
            exact = daily_checkin.check_in(user_id).exact
        plaza.queues.away = False
    connections.REDIS.breaker.close()
    quiet()
    days = mysql.fetch_all("SELECT 1 FROM checkin WHERE user_id = %s", (user_id,))
    assert len(days) == int(exact)


def test_unlike_after_a_failover_to_a_slow_clock_may_need_a_repeat(
    traffic: Traffic, nodes: Cluster, plaza: World, quiet: Callable[[], AuditReport]
) -> None:
    """The like's version was an hour ahead and died with its master; the queue has the like."""
    assert quiet().clean
    post, who = POSTS[0], 7
    with nodes.lose_unreplicated_writes(meta_key(post)):
        assert react.react(LIKE, post, who, True).changed
        [body] = plaza.queues.take("reactions")
    version_us = REACTIONS.decode(str(body)).effective_version_us
    ahead_us = version_us + 3_600_000_000
    plaza.queues.send("reactions", body.replace(str(version_us), str(ahead_us)))
    deadline_s = time.monotonic() + 10
    while not (outcome := react.react(LIKE, post, who, False)).exact:
        assert time.monotonic() < deadline_s
    assert (outcome.on, outcome.changed) == (False, False), "the like is only on the queue"
    assert react.react(LIKE, post, who, True).changed
    assert react.react(LIKE, post, who, False).changed
    report = quiet()
    assert report.clean, report.differences
    assert (post.id, who) in rows(), "of two versions the later stands, however it came by its time"

    again = react.react(LIKE, post, who, False)
    assert (again.changed, again.exact) == (True, True)
    [body] = plaza.queues.messages["reactions"]
    assert REACTIONS.decode(str(body)).effective_version_us > ahead_us, "later than all it knows"
    assert quiet().clean
    assert (post.id, who) not in rows()


def test_likes_are_provisional_while_a_master_lacks_replicas(
    traffic: Traffic, nodes: Cluster, quiet: Callable[[], AuditReport]
) -> None:
    """``min-replicas-to-write 1``: unreplicated writes are refused."""
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
    connections.REDIS.breaker.close()
    traffic.run_until_normal()
    assert quiet().clean
    assert traffic.acknowledged <= rows()


def test_other_masters_serve_while_one_is_down(
    traffic: Traffic, nodes: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes.configure("cluster-node-timeout", 60_000)  # no replica takes over
    try:
        master = nodes.master_of(meta_key(POSTS[0]))
        there = [post for post in POSTS if nodes.master_of(meta_key(post)) == master]
        elsewhere = [post for post in POSTS if post not in there]
        master.kill()
        for _ in range(3):
            connections.REDIS.breaker.close()
            assert {traffic.like(post) for post in there[:3]} <= {202, 503}
            connections.REDIS.breaker.close()  # a like may fail at two calls, and five open it
            assert [traffic.like(post) for post in elsewhere] == [200] * len(elsewhere)
        connections.REDIS.breaker.close()
        assert queries.read_counts([(LIKE, post) for post in elsewhere], None)[1], "exact"
        with pytest.raises(RedisDown):
            redis.execute("HGET", meta_key(there[0]), "base")
    finally:
        nodes.configure("cluster-node-timeout", NODE_TIMEOUT_MS)


def test_process_with_only_dead_nodes_falls_back_to_the_url(
    traffic: Traffic,
) -> None:
    manager: Any = connections.client().nodes_manager
    make_node: Callable[..., Any] = ClusterNode
    gone = make_node("127.0.0.1", 1, redis_connection=redis_py.Redis(port=1))
    # As if all known nodes had been replaced while this process was frozen.
    manager.nodes_cache = {gone.name: gone}
    manager.slots_cache = {slot: [gone] for slot in range(16_384)}
    assert traffic.like(POSTS[0]) == 202
    assert traffic.like(POSTS[0]) == 200

"""The scan of all keys, hot-key reports, and cached totals of hot targets."""

from __future__ import annotations

import argparse
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import redis as redis_py

import ops.keys
from bench.round_trips import count_round_trips
from local.stack import servers
from local.stack.ports import free_port
from plaza.core.reactions import LIKE, Target, react
from plaza.core.reactions.hot_totals import hot_totals
from plaza.core.reactions.model import Count
from plaza.infra.redis import connections, hot_keys, redis
from plaza.infra.redis.commands import Command
from plaza.infra.redis.hot_keys import SAMPLE_EVERY, Sampler, hot_key, spared_key
from plaza.infra.redis.shards import SHARDS
from plaza.infra.runtime import clock
from plaza.operate.keyspace import key_scan
from plaza.operate.keyspace.key_scan import REPORT_KEY, SCAN_KEY, SCAN_STATE, ScanState
from tests.integration.conftest import Away
from tests.support.functions import event, handler
from tests.support.plaza import World, forget
from tests.support.stores import keys, read_counts

POST = Target("post", 11)


def scan_all() -> ScanState:
    return key_scan.continue_scan(ScanState(time.time()), 60)


def by_key(state: ScanState) -> dict[str, key_scan.KeySize]:
    return {item.key: item for of_type in state.biggest.values() for item in of_type}


def fill(number: int) -> None:
    connections.client().mset({f"{{1}}:small:{i}": "x" for i in range(number)})


# ---------------------------------------------------------------- findings


def test_keys_of_each_type_are_measured(plaza: World) -> None:
    client = connections.client()
    client.set("{1}:string", "x" * 5_000)
    client.hset("{1}:hash", mapping={f"f{i}": i for i in range(100)})
    client.zadd("{1}:zset", {f"m{i}": i for i in range(200)})
    client.sadd("{1}:set", *range(300))
    client.rpush("{1}:list", *range(400))
    result = by_key(scan_all())
    assert {key: (f.type, f.length) for key, f in result.items()} == {
        "{1}:string": ("string", 5_000),
        "{1}:hash": ("hash", 100),
        "{1}:zset": ("zset", 200),
        "{1}:set": ("set", 300),
        "{1}:list": ("list", 400),
    }
    assert 5_000 < result["{1}:string"].bytes < 8_000


def test_a_key_with_more_than_10000_members_is_oversized(plaza: World) -> None:
    client = connections.client()
    for number in (10_000, 10_001):
        client.sadd(f"{{1}}:set:{number}", *range(number))
        client.hset(f"{{1}}:hash:{number}", mapping={str(i): 1 for i in range(number)})
    state = scan_all()
    assert sorted(key.key for key in state.oversized) == ["{1}:hash:10001", "{1}:set:10001"]
    assert state.oversized_total == 2


def test_a_key_of_a_megabyte_is_oversized(plaza: World) -> None:
    client = connections.client()
    client.set("{1}:text", "x" * 1_000_000)
    client.set("{1}:less", "x" * 900_000)
    client.hset("{1}:hash", mapping={str(i): "x" * 2_000 for i in range(600)})
    assert sorted(key.key for key in scan_all().oversized) == ["{1}:hash", "{1}:text"]


@pytest.mark.parametrize(
    "key", ["{1}:like:post:1:bloom", "{1}:like:post:1:filling", "{2}:shops:filter"]
)
def test_a_bloom_filter_above_a_mebibyte_is_oversized(plaza: World, key: str) -> None:
    redis.execute("SETBIT", key, 8_388_608, 1)
    assert scan_all().oversized == []
    redis.execute("SETBIT", key, 8_400_000, 1)
    assert [item.key for item in scan_all().oversized] == [key]


def test_keys_of_shops_are_reported_as_expected(plaza: World) -> None:
    for key in ("{1}:shops:placed", "{1}:shops:77:all"):
        redis.execute("HSET", key, *(part for i in range(10_001) for part in (i, i)))
    state = scan_all()
    assert (state.oversized_total, state.unexpected_total, len(state.oversized)) == (2, 1, 2)


def test_the_ten_biggest_keys_of_each_type_are_reported(plaza: World) -> None:
    client = connections.client()
    for i in range(1, 31):
        client.set(f"{{1}}:s:{i}", "x" * i * 1_000)
        client.sadd(f"{{1}}:set:{i}", *(f"member {j}" for j in range(i * 10)))
    biggest = scan_all().biggest
    assert [f.key for f in biggest["string"]] == [f"{{1}}:s:{i}" for i in range(30, 20, -1)]
    sizes = [f.length for f in biggest["set"]]  # the order is by memory, an estimate of Redis
    assert len(sizes) == 10
    assert min(sizes) >= 170


# ---------------------------------------------------------------- steps


def test_a_step_scans_about_500_keys_in_three_round_trips(plaza: World) -> None:
    fill(20_000)
    for node in redis.nodes().values():
        redis.send_to_node(node, [("PING",)])  # connects
    with count_round_trips() as counter:
        state = key_scan.continue_scan(ScanState(time.time()), 0)
    assert counter.sent == 3 + len(redis.nodes()) - 1, "in a cluster, one node has keys"
    assert 400 <= state.scanned <= 700
    assert not state.finished_s


def test_the_next_run_continues_the_scan(plaza: World) -> None:
    fill(5_000)
    redis.execute("ZADD", "{9}:big", *(part for i in range(10_001) for part in (i, i)))
    runs, scanned = 0, [0]
    while not redis.execute("EXISTS", REPORT_KEY):
        runs += 1
        scanned.append(key_scan.scan_keys(max_s=0)["scanned"])
    assert 7 <= runs <= 13, "5,000 keys in steps of 500"
    assert scanned == sorted(scanned)
    assert scanned[-1] >= 5_001
    assert not redis.execute("EXISTS", SCAN_KEY), "the next run begins a new scan"
    report = key_scan.read_report()
    assert report is not None
    assert [key.key for key in report.oversized] == ["{9}:big"]


def ask_for_keys() -> tuple[int, dict[str, Any]]:
    reply = handler("api/operations")(event("operations.get_keys"), None)
    return reply["statusCode"], json.loads(reply["body"])


def test_an_admin_reads_large_and_hot_keys(plaza: World) -> None:
    nothing: dict[str, Any] = {
        "scanned_at": None,
        "scanned": 0,
        "oversized": 0,
        "large": [],
        "hot": [],
    }
    status, body = ask_for_keys()
    assert (status, body) == (200, nothing), "no scan has ended"
    redis.execute("ZADD", "{9}:big", *(part for i in range(10_001) for part in (i, i)))
    redis.execute("SET", "auth{9}:session:abcdef", "x" * 5_000)
    redis.execute("ZADD", hot_key("{9}", int(time.time() // 60)), 600, "auth{9}:session:abcdef")
    while not redis.execute("EXISTS", REPORT_KEY):
        key_scan.scan_keys(max_s=60)
    status, body = ask_for_keys()
    assert status == 200
    assert body["scanned_at"].endswith("Z")
    assert (body["scanned"] >= 2, body["oversized"]) == (True, 1)
    sizes = {item["key"]: item for item in body["large"]}
    assert sizes["{9}:big"] == {
        "key": "{9}:big",
        "type": "zset",
        "bytes": sizes["{9}:big"]["bytes"],
        "members": 10_001,
        "oversized": True,
        "expected": False,
    }
    assert sizes["auth{9}:session:..."]["members"] is None
    assert body["large"][0]["key"] == "{9}:big", "the largest first"
    assert body["hot"] == [
        {
            "key": "auth{9}:session:...",
            "commands_per_s": 2.0,
            "from_memory_per_s": 0.0,
            "from_replicas_per_s": 0.0,
        }
    ]
    assert "abcdef" not in json.dumps(body), "hashes of sessions are left out"


def test_large_and_hot_keys_need_redis(plaza: World, redis_away: Away) -> None:
    ask_for_keys()
    with redis_away():
        assert ask_for_keys()[0] == 503


def test_a_scan_state_is_decoded_unchanged(plaza: World) -> None:
    fill(2_000)
    state = key_scan.continue_scan(ScanState(time.time()), 0)
    assert SCAN_STATE.decode(SCAN_STATE.encode(state)) == state
    assert len(SCAN_STATE.encode(state)) < 4_000


def test_every_key_that_exists_during_the_whole_scan_is_scanned(plaza: World) -> None:
    fill(3_000)
    redis.execute("SET", "{1}:needle", "x" * 50_000)
    state = ScanState(time.time())
    for number in range(100):
        if state.finished_s:
            break
        state = key_scan.continue_scan(SCAN_STATE.decode(SCAN_STATE.encode(state)), 0)
        connections.client().mset(
            {f"{{2}}:{number}:{i}": "x" for i in range(300)}
        )  # the table grows
        redis.execute("DEL", *(f"{{1}}:small:{number * 50 + i}" for i in range(50)))
    assert state.finished_s
    assert "{1}:needle" in by_key(state)


def test_a_key_deleted_while_it_is_measured_is_left_out(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(10)
    send_to_node = redis.send_to_node

    def send_and_delete(node: Any, commands: Any) -> Any:
        replies = send_to_node(node, commands)
        if commands[0][0] == "TYPE":
            redis.execute("DEL", "{1}:small:3")
            redis.execute("DEL", "{1}:small:4")
            redis.execute("SADD", "{1}:small:4", 1)  # of another type
        return replies

    monkeypatch.setattr(redis, "send_to_node", send_and_delete)
    assert scan_all().scanned == 8


# ---------------------------------------------------------------- clusters


@pytest.fixture
def cluster(tmp_path: Path, set_up: Callable[..., None]) -> Iterator[list[Any]]:
    """A cluster of two primaries; a client of each."""
    nodes, buses = [], [free_port(), free_port()]
    for number, bus in enumerate(buses):
        server = servers.prepare_redis(tmp_path / f"node{number}" / "redis")
        with (server.directory / "redis.conf").open("a") as conf:
            conf.write(f"cluster-enabled yes\ncluster-port {bus}\n")
        nodes.append(server)
    try:
        for server in nodes:
            server.start()
        clients: list[Any] = [redis_py.Redis.from_url(s.url, decode_responses=True) for s in nodes]
        clients[0].execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 8191)
        clients[1].execute_command("CLUSTER", "ADDSLOTSRANGE", 8192, 16383)
        clients[1].execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[0].port, buses[0])
        until_s = time.monotonic() + 20
        while any(
            "cluster_state:ok" not in str(c.execute_command("CLUSTER", "INFO")) for c in clients
        ):
            assert time.monotonic() < until_s, "the cluster is not ready"
            time.sleep(0.05)
        set_up(redis_url=nodes[0].url.removesuffix("/0"), redis_cluster=1)
        yield clients
        for client in clients:
            client.close()
    finally:
        for server in nodes:
            server.stop()
        forget()


def test_every_primary_of_a_cluster_is_scanned(cluster: list[Any]) -> None:
    for i in range(3_000):
        redis.execute("SET", f"{{{i % SHARDS}}}:{i}", "x")
    assert all(client.dbsize() > 500 for client in cluster)
    for shard in (1, 2, 3, 4):
        redis.execute("SET", f"{{{shard}}}:big", "x" * 1_000_001)
    assert all(client.keys("*:big") for client in cluster), "both nodes have big keys"

    scanned: list[int] = []
    while not redis.execute("EXISTS", REPORT_KEY):
        scanned.append(key_scan.scan_keys(max_s=0)["scanned"])
    assert len(scanned) >= 3
    report = key_scan.read_report()
    assert report is not None
    assert report.scanned >= 3_004
    assert sorted(key.key for key in report.oversized) == [f"{{{i}}}:big" for i in (1, 2, 3, 4)]
    assert len(report.cursors) == 2


def test_a_removed_node_is_dropped_and_a_new_one_is_scanned(plaza: World) -> None:
    fill(100)
    state = key_scan.continue_scan(ScanState(time.time(), cursors={"10.0.0.9:6379": 77}), 60)
    assert (state.cursors, state.scanned) == (dict.fromkeys(redis.nodes(), -1), 100)


def test_reports_go_to_the_node_of_their_command_in_a_cluster(
    cluster: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis, "sampler", reporting_sampler())
    for i in range(20):
        redis.execute("SET", f"{{{i}}}:a", 1)
    results = [k for client in cluster for k in client.keys("*:hot:*")]
    assert len(results) == 20
    assert {hot.key for hot in key_scan.read_hot_keys()} == {f"{{{i}}}:a" for i in range(20)}


# ---------------------------------------------------------------- reports


def test_findings_are_logged_with_metrics(plaza: World, capsys: pytest.CaptureFixture[str]) -> None:
    redis.execute("SET", "{1}:big", "x" * 2_000_000)
    redis.execute("SADD", "{1}:set", *range(20))
    report_hot_key("{1}:big", 3_000)
    capsys.readouterr()
    result = handler("schedule/scan_keys")(event("scan_keys.schedule"), None)
    assert result == {"scanned": 3, "oversized": 1, "complete": 1}
    line = json.loads(capsys.readouterr().out.splitlines()[0])
    assert line["event"] == "keys_scanned"
    assert (line["oversized_keys"], line["oversized"], line["largest_key_members"]) == (
        1,
        ["{1}:big"],
        20,
    )
    assert line["largest_key_bytes"] > 2_000_000
    assert line["hottest"] == [["{1}:big", 10.0]]
    named = {metric["Name"] for metric in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]}
    assert {"oversized_keys", "largest_key_bytes", "hottest_key_commands_per_s"} <= named


def test_hashes_of_sessions_and_challenges_are_redacted() -> None:
    assert key_scan.redact_key("auth{7}:session:0123abcd") == "auth{7}:session:..."
    assert key_scan.redact_key("auth{7}:challenge:0123abcd") == "auth{7}:challenge:..."
    assert key_scan.redact_key("{7}:like:post:11:meta") == "{7}:like:post:11:meta"


def test_the_command_prints_the_report(plaza: World, capsys: pytest.CaptureFixture[str]) -> None:
    redis.execute("ZADD", "{1}:zset", *(part for i in range(10_001) for part in (i, i)))
    fill(5)
    report_hot_key("{1}:zset", 6_000)
    args = argparse.Namespace(environment=True, limit=3, minutes=5, json=True)
    assert ops.keys.main(args) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["scanned"], report["complete"]) == (7, True)
    assert [row["key"] for row in report["oversized"]] == ["{1}:zset"]
    assert {row["type"] for row in report["big"]} == {"string", "zset"}
    assert report["hot"] == [{"key": "{1}:zset", "per_s": 20.0}]

    args.json = False
    ops.keys.main(args)
    shown = capsys.readouterr().out
    assert "{1}:zset" in shown
    assert "10,001" in shown
    assert "too big" in shown


# ---------------------------------------------------------------- hot keys


def report_hot_key(key: str, count: int) -> None:
    redis.execute("ZINCRBY", hot_key("{5}", int(time.time() // 60)), count, key)


def reporting_sampler() -> Sampler:
    """Return a sampler that counts every command and reports with every command."""

    class Reporting(Sampler):
        def sample(self, commands: Sequence[Command]) -> list[Command]:
            self._reported_s = 0
            return super().sample(commands)

    return Reporting(gap=lambda: 1)


def test_reporting_hot_keys_costs_no_round_trip(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis.pipeline([("PING",)])
    monkeypatch.setattr(redis, "sampler", reporting_sampler())
    with count_round_trips() as counter:
        assert redis.execute("SET", "{1}:a", 1) is True
        assert redis.execute("GET", "{1}:a") == "1"
        assert redis.pipeline([("GET", "{1}:a"), ("EXISTS", "{1}:b")]) == ["1", 0]
    assert counter.sent == 3
    assert next(iter(key_scan.read_hot_keys())).key == "{1}:a"


def test_scripts_work_while_hot_keys_are_reported(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plaza.add(POST)
    monkeypatch.setattr(redis, "sampler", reporting_sampler())
    redis.execute("SCRIPT", "FLUSH")
    assert react.react(LIKE, POST, 7, True).total == 1
    assert react.react(LIKE, POST, 7, True).changed is False
    assert read_counts([(LIKE, POST)], 7) == ([Count(1, True)], True)


def test_a_refused_report_does_not_fail_the_command(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis, "sampler", reporting_sampler())
    redis.execute("SET", hot_key("{1}", int(time.time() // 60)), "not a zset")
    assert redis.execute("SET", "{1}:a", 1) is True
    assert redis.execute("GET", "{1}:a") == "1"


def test_hot_key_reports_are_summed_over_processes_and_minutes(plaza: World) -> None:
    now = int(time.time() // 60)
    for minute, shard, key, count in [
        (now, 1, "a", 600), (now, 2, "a", 300), (now - 1, 1, "a", 300), (now - 1, 9, "b", 2_400),
        (now - 7, 1, "c", 10_000),
    ]:  # fmt: skip
        redis.execute("ZINCRBY", hot_key(f"{{{shard}}}", minute), count, key)
    redis.execute("ZINCRBY", spared_key("{3}", now), 6_000, "memory a")
    redis.execute("ZINCRBY", spared_key("{4}", now), 300, "replica b")
    assert key_scan.read_hot_keys(minutes=5) == [("a", 4.0, 20.0, 0.0), ("b", 8.0, 0.0, 1.0)]
    with count_round_trips() as counter:
        key_scan.read_hot_keys()
    assert counter.sent == 1


# ---------------------------------------------------------------- hot targets


def read(times: int, actor_id: int | None = None) -> int:
    """Read the total ``times`` times; return the number of round trips."""
    with count_round_trips() as counter:
        for _ in range(times):
            read_counts([(LIKE, POST)], actor_id)
    return counter.sent


@pytest.fixture
def post(plaza: World, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A post with two likes, and a stopped clock."""
    now = [clock.monotonic_s()]
    monkeypatch.setattr(clock, "monotonic_s", lambda: now[0])
    plaza.add(POST)
    for actor in (8, 9):
        react.react(LIKE, POST, actor, True)
    return now


def test_reads_from_memory_are_reported_with_their_key(
    post: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hot_keys.sampler, "_gap", lambda: 1)
    hot_keys.sampler.reset()
    read(120)
    post[0] += 1
    monkeypatch.setattr(hot_keys, "REPORT_EVERY_S", 0)
    read(1)
    [hot] = [item for item in key_scan.read_hot_keys(minutes=1) if item.key == keys(POST).meta]
    assert hot.from_memory_per_s == pytest.approx(100 * SAMPLE_EVERY / 60, rel=0.01)


def like_elsewhere(actor: int) -> None:
    """Like the post as another process does, without this process's cache."""
    hot, hot_totals._entries = hot_totals._entries, OrderedDict()
    react.react(LIKE, POST, actor, True)
    hot_totals._entries = hot


def total(actor_id: int | None = None) -> int:
    return read_counts([(LIKE, POST)], actor_id)[0][0].total


def test_the_total_of_a_hot_target_is_read_from_redis_once_a_second(post: list[float]) -> None:
    assert read(500) == 20
    post[0] += 1
    assert read(500) == 1


def test_a_cached_total_is_at_most_a_second_old(post: list[float]) -> None:
    read(500)
    like_elsewhere(10)
    post[0] += 0.9
    assert total() == 2
    post[0] += 0.1
    assert total() == 3


def test_a_caller_with_a_session_reads_from_redis_each_time(post: list[float]) -> None:
    read(500)
    like_elsewhere(10)
    assert read(30, actor_id=10) == 30
    assert read_counts([(LIKE, POST)], 10) == ([Count(3, True)], True)
    assert read_counts([(LIKE, POST)], 11) == ([Count(3, False)], True)


def test_a_reaction_in_this_process_drops_the_cached_total(post: list[float]) -> None:
    read(500)
    outcome = react.react(LIKE, POST, 10, True)
    assert (outcome.total, outcome.changed) == (3, True)
    assert total() == 3
    assert react.react(LIKE, POST, 10, True).changed is False


def test_a_page_reads_only_uncached_totals_from_redis(post: list[float], plaza: World) -> None:
    other = Target("post", 12)
    plaza.add(other)
    read(500)
    page = [(LIKE, other), (LIKE, POST), (LIKE, other)]
    assert read_counts(page, None) == (
        [Count(0, False), Count(2, False), Count(0, False)],
        True,
    )


def test_inexact_totals_are_not_cached(post: list[float], redis_away: Away, plaza: World) -> None:
    plaza.queues.drain()
    with redis_away():
        for _ in range(30):
            counts, exact = read_counts([(LIKE, POST)], None)
            assert (counts, exact) == ([Count(2, False)], False)
        assert hot_totals.get(("like", POST)) is None

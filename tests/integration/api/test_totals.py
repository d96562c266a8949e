"""Totals for screens: what they have, how they are cached, and what they cannot use up."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from bench.round_trips import count_round_trips
from plaza.core.live import MAX_TARGETS
from plaza.core.live.polls import MAX_SCREENS, STORE_S, count_poll, read_screens
from plaza.core.live.read_totals import MAX_LOADED
from plaza.core.reactions import COLLECT, FOLLOW, LIKE, Target, hydration, kinds, queries, react
from plaza.core.switches import redis_store
from plaza.core.switches.model import Switches
from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime import clock, switch_state
from plaza.infra.runtime.process import clear_caches
from plaza.people.auth.new_session import open_session
from tests.integration.conftest import Away
from tests.support.consumers import statements
from tests.support.failures import failing
from tests.support.keyspace import find_keys
from tests.support.plaza import World
from tests.support.sign_in_client import HOME, Reply, send, signed_in
from tests.support.stores import ORDER_TOKEN, POST, add_users, insert_rows, keys

COMMENT, REVIEW, USER = Target("comment", 21), Target("review", 31), Target("user", 8)
ALL = "post:11,comment:21,review:31,user:8"
SCREENS, POLLS_OF_SCREEN = 40, 60  # a feed's screen polls three types every 5 s for 100 s


@pytest.fixture(autouse=True)
def _content(plaza: World) -> None:
    plaza.add(POST, COMMENT, REVIEW)
    add_users(7, 8)
    follow_switches(Switches())


def follow_switches(switches: Switches) -> None:
    """Let all processes follow ``switches``."""
    redis_store.drop()
    redis_store.store(1, switches)
    switch_state.follow(switches)


def poll(of: str = ALL, headers: Mapping[str, str] | None = None, source: str = HOME) -> Reply:
    return send("GET", f"/totals?of={of}", headers=headers, source=source, folder="api/totals")


def test_each_type_has_its_totals_with_their_tokens_in_the_order_of_the_request() -> None:
    liked = react.react(LIKE, POST, 7, True)
    collected = react.react(COLLECT, POST, 7, True)
    followed = react.react(FOLLOW, USER, 7, True)
    items = poll("user:8,post:11,review:31").body["items"]
    assert items[:2] == [
        {
            "type": "user",
            "id": "8",
            "followers": 1,
            "followers_at": followed.at,
            "reactions": {"follow": {"total": 1, "at": followed.at}},
        },
        {
            "type": "post",
            "id": "11",
            "likes": 1,
            "likes_at": liked.at,
            "collects": 1,
            "collects_at": collected.at,
            "comments": 0,
            "reactions": {
                "like": {"total": 1, "at": liked.at},
                "collect": {"total": 1, "at": collected.at},
                "bookmark": {"total": 0, "at": ORDER_TOKEN},
            },
        },
    ]
    unknown = {"total": 0, "at": ORDER_TOKEN}
    assert items[2] == {
        "type": "review",
        "id": "31",
        "likes": 0,
        "likes_at": ORDER_TOKEN,
        "collects": 0,
        "collects_at": ORDER_TOKEN,
        "reactions": {kind.name: unknown for kind in kinds.kinds_of("review")},
    }


def test_a_missing_target_has_zeros_and_a_deleted_one_its_last_totals(plaza: World) -> None:
    react.react(LIKE, POST, 7, True)
    plaza.queues.drain()
    hydration.tombstone([POST])
    items = poll("post:11,post:999,user:999").body["items"]
    assert [(i.get("likes"), i.get("followers")) for i in items] == [
        (1, None),
        (0, None),
        (None, 0),
    ]
    assert [items[1]["likes_at"], items[1]["collects_at"], items[2]["followers_at"]] == [None] * 3


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?of=",
        "?of=post",
        "?of=post:0",
        "?of=shop:1",
        "?of=post:9999999999999999999",
        "?of=post:11,post:11",
        "?of=" + ",".join(f"post:{n}" for n in range(1, MAX_TARGETS + 2)),
        "?of=post:11&mine=true",
    ],
)
def test_other_references_are_refused(query: str) -> None:
    reply = send("GET", f"/totals{query}", folder="api/totals")
    assert (reply.status, reply.problem) == (400, "invalid-request")
    assert reply.headers["cache-control"] == "no-store"


def test_as_many_targets_as_fit_are_answered() -> None:
    of = ",".join(f"post:{n}" for n in range(1, MAX_TARGETS + 1))
    assert len(poll(of).body["items"]) == MAX_TARGETS


def test_all_callers_get_the_same_whatever_token_they_send() -> None:
    react.react(LIKE, POST, 7, True)
    plain = poll()
    for authorization in (f"Bearer {open_session(7)}", "Bearer nonsense", "Basic x"):
        assert poll(headers={"authorization": authorization}).body == plain.body


def test_an_unchanged_answer_is_a_304() -> None:
    tag = poll().headers["etag"]
    assert poll(headers={"if-none-match": tag}).status == 304
    react.react(LIKE, POST, 7, True)
    clear_caches()
    assert poll(headers={"if-none-match": tag}).status == 200


@pytest.mark.parametrize(("poll_s", "max_age_s"), [(5, 5), (30, 30), (0, 60)])
def test_operators_set_the_interval_of_clients(poll_s: int, max_age_s: int) -> None:
    follow_switches(Switches(live_poll_s=poll_s))
    assert poll().headers["cache-control"] == f"public, max-age={max_age_s}, s-maxage=1"


def test_a_poll_loads_ten_targets_and_reads_the_others_in_one_statement(plaza: World) -> None:
    """Given forty comments without readers for days."""
    cold = [Target("comment", n) for n in range(100, 140)]
    plaza.add(*cold)
    insert_rows([(target, 7, 1, 1_000) for target in cold])
    of = ",".join(map(str, cold))
    before = statements()
    items = poll(of).body["items"]
    assert statements() - before == 5, "existence, snapshots, hidden texts, totals; and this one"
    assert [item["likes"] for item in items] == [1] * 40
    loaded = -(-MAX_LOADED // len(kinds.kinds_of("comment")))
    assert [item["likes_at"] is not None for item in items] == [True] * loaded + [False] * (
        40 - loaded
    )
    assert len([key for key in find_keys("*:meta") if ":comment:1" in key]) == MAX_LOADED
    for _ in range(40 * len(kinds.kinds_of("comment")) // MAX_LOADED):
        items = poll(of).body["items"]
    assert all(item["likes_at"] for item in items), "further polls load them all"


def test_without_redis_mysql_answers_without_tokens_within_its_budget(
    redis_away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert_rows([(POST, 7, 1, 1_000)])
    monkeypatch.setattr(queries, "_fallback_budget", TokenBucket(rate_per_s=0.001, burst=1))
    with redis_away():
        answered, refused = poll("post:11"), poll("post:11")
    assert (answered.status, answered.body["items"][0]["likes_at"]) == (200, None)
    assert (refused.status, refused.headers["cache-control"]) == (503, "no-store")
    assert "retry-after" in refused.headers


def test_polls_of_forty_screens_leave_likes_and_sign_ins_alone(
    set_up: Callable[..., None],
) -> None:
    """Given an office behind one address, where the limits of others are almost used up."""
    set_up(anonymous_per_s=0.001, anonymous_burst=8)
    statuses = {poll().status for _ in range(SCREENS * POLLS_OF_SCREEN)}
    assert statuses == {200}
    token = signed_in()
    liked = send("PUT", "/posts/11/likes/me", token=token, folder="api/reactions")
    assert liked.status == 200


def test_polls_of_one_network_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plaza.infra.http.limits.POLLS_BURST", 2)
    monkeypatch.setattr("plaza.infra.http.limits.POLLS_PER_S", 0.001)
    assert [poll().status for _ in range(4)] == [200, 200, 429, 429]
    assert poll(source="198.51.100.9").status == 200


def test_one_of_a_hundred_polls_is_logged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lines(draw: float) -> list[dict[str, Any]]:
        monkeypatch.setattr("plaza.infra.http.resolver.random.random", lambda: draw)
        poll()
        written = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line]
        return [line for line in written if line.get("event") == "request_served"]

    assert lines(0.011) == []
    assert [line["sample_rate"] for line in lines(0.009)] == [0.01]


def test_a_hot_poll_costs_one_round_trip_and_no_statement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given a post that this process keeps in memory: its rate limit is in Redis."""
    monkeypatch.setattr("plaza.core.live.polls.STORE_S", 3_600)
    for _ in range(100):
        poll("post:11")
    before = statements()
    with count_round_trips() as counted:
        poll("post:11")
    assert (counted.sent, statements() - before) == (1, 1), "the second one counts statements"


def test_the_token_of_a_poll_is_of_the_load() -> None:
    react.react(LIKE, POST, 7, True)
    first = poll("post:11").body["items"][0]["likes_at"]
    redis.execute("UNLINK", keys().meta)
    clear_caches()
    assert poll("post:11").body["items"][0]["likes_at"] > first


# ---------------------------------------------------------------- polls and screens


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """``later(3)``: 3 s pass for this process."""
    shift_s = 0.0
    real_monotonic_s, real_now_s = clock.monotonic_s, clock.now_s
    begin_s = real_now_s() // 60 * 60 - real_now_s()  # of a minute

    def pass_time(seconds: float) -> None:
        nonlocal shift_s
        shift_s += seconds

    monkeypatch.setattr(clock, "monotonic_s", lambda: real_monotonic_s() + shift_s)
    monkeypatch.setattr(clock, "now_s", lambda: real_now_s() + begin_s + shift_s)
    return pass_time


def test_polls_and_screens_are_counted_with_one_round_trip_a_second(
    later: Callable[[float], None],
) -> None:
    with count_round_trips() as sent:
        for number in range(300):
            count_poll(f"203.0.113.{number % 30}", [f"post:{number % 2}"])
    assert sent.sent == 1
    assert read_screens() == {"polls_total": 1, "screens": 0}
    later(STORE_S)
    count_poll("203.0.113.0", ["post:0"])
    later(60)
    assert read_screens() == {"polls_total": 301, "screens": 30}
    later(60)
    assert read_screens() == {"polls_total": 301, "screens": 0}


def test_polls_are_counted_later_while_redis_is_away(
    later: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(redis, "pipeline", failing(RedisDown("away")))
        for number in range(2 * MAX_SCREENS):
            count_poll("203.0.113.7", [f"post:{number}"])
    later(60)
    count_poll("203.0.113.8", ["post:1"])
    later(60)
    counted = read_screens()
    assert counted["polls_total"] == 2 * MAX_SCREENS + 1
    assert MAX_SCREENS * 0.95 < counted["screens"] < MAX_SCREENS * 1.05


def test_a_poll_is_counted() -> None:
    poll()
    assert read_screens()["polls_total"] == 1

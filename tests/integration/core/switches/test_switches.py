"""Switches: changes by operators, the copies in Redis and in processes, and what they stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import pytest

from bench.round_trips import count_round_trips
from local.stack.servers import connect_mysql
from plaza.core.switches import (
    LEVELS,
    SwitchChange,
    SwitchesChanged,
    change_switches,
    mysql_store,
    redis_store,
    refresh,
)
from plaza.core.switches.model import SWITCHES, Switches, current, level_of
from plaza.infra.http import limits
from plaza.infra.http.limits import anonymous_bucket
from plaza.infra.http.routes import SERVER
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis import redis
from plaza.infra.runtime import clock, switch_state
from plaza.infra.runtime.process import reset_process
from plaza.infra.runtime.switch_state import MAX_AGE_S
from plaza.people.auth import caller_identity, new_session
from plaza.people.auth.caller_identity import bucket_of_user
from plaza.people.auth.operate_server_keys import make_server_key
from plaza.social.recommendations import RebuildLists, post_rankings, recommend
from plaza.social.recommendations.queues import RECOMMENDATIONS
from tests.integration.api.test_every_route import ROUTES, Route
from tests.integration.conftest import Away
from tests.integration.people.auth.test_rate_limits import empty
from tests.integration.people.auth.test_sessions import set_role
from tests.support.consumers import statements
from tests.support.logs import read_log
from tests.support.plaza import World
from tests.support.sign_in_client import HOME, Reply, read_code, request_code, send, sign_in
from tests.support.stores import POST
from tests.unit.policy.test_switches import ROUTES as DECLARED

OPERATOR, OTHER = 1, 2
READ_ONLY = Switches(read_only=True)
WRITE = "PUT /posts/{post_id}/likes/me"


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """``later(3)``: 3 s pass for this process."""
    shift_s = 0.0
    real_monotonic_s, real_now_us = clock.monotonic_s, clock.now_us

    def pass_time(seconds: float) -> None:
        nonlocal shift_s
        shift_s += seconds

    monkeypatch.setattr(clock, "monotonic_s", lambda: real_monotonic_s() + shift_s)
    monkeypatch.setattr(clock, "now_us", lambda: real_now_us() + int(shift_s * 1e6))
    return pass_time


@pytest.fixture(autouse=True)
def _operators(plaza: World) -> None:
    set_role(OPERATOR, "admin")
    set_role(OTHER, "admin")


def change(switches: Switches, version: int = 0) -> None:
    change_switches.replace_switches(version, asdict(switches), "a test", OPERATOR)


def be_new_process() -> None:
    """Forget the switches of this process, and all its connections."""
    reset_process()
    assert current() == Switches()


def count_trips(call: Callable[[], Any]) -> int:
    with count_round_trips() as counter:
        call()
    return counter.sent


def identify() -> None:
    caller_identity.identify(None, HOME, "GET /shop-types")


# ---------------------------------------------------------------- changes


def ops(method: str, path: str, body: Any = None, operator: int = OPERATOR) -> Reply:
    token = new_session.open_session(operator)
    return send(method, f"/ops/switches{path}", body, token=token, folder="api/operations")


def test_switches_are_normal_before_the_first_change() -> None:
    body = ops("GET", "").body
    assert (body["version"], body["level"], body["changed_by"]) == (0, "normal", None)
    assert body["switches"]["read_only"] is False
    assert ops("GET", "/changes").body == {"items": [], "next": None}


def test_a_change_is_stored_with_who_when_why_and_what_was_before() -> None:
    first = ops("PUT", "/level", {"level": "relieved", "version": 0, "reason": "The evening."})
    assert (first.status, first.body["version"], first.body["level"]) == (200, 1, "relieved")
    expected = first.body["switches"] | {"stopped_sales": ["12", "9"]}
    body = {"switches": expected, "version": 1, "reason": "Voucher 12 is wrong."}
    second = ops("PUT", "", body, operator=OTHER)
    assert (second.body["level"], second.body["changed_by"]) == ("relieved", str(OTHER))
    assert ops("GET", "").body == second.body

    [newest] = ops("GET", "/changes?limit=1").body["items"]
    page = ops("GET", "/changes").body
    assert page["next"] is None
    assert page["items"][0] == newest
    assert [item["version"] for item in page["items"]] == [2, 1]
    assert newest["before"] == page["items"][1]["after"] == first.body["switches"]
    assert newest["after"]["stopped_sales"] == ["12", "9"]
    assert newest["reason"] == "Voucher 12 is wrong."
    assert page["items"][1]["before"]["cached_lists_only"] is False


def test_a_request_names_each_switch() -> None:
    all_switches = asdict(Switches()) | {"stopped_sales": []}
    for name in all_switches:
        lacking = {key: value for key, value in all_switches.items() if key != name}
        refused = ops("PUT", "", {"switches": lacking, "version": 0, "reason": "Which are these?"})
        assert refused.status == 400, name


def test_changes_are_listed_in_pages() -> None:
    for version in range(5):
        change(Switches(reads_factor=version + 1), version)
    seen, cursor = [], ""
    while True:
        page = ops("GET", f"/changes?limit=2{cursor}").body
        seen += [
            (item["before"]["reads_factor"], item["after"]["reads_factor"])
            for item in page["items"]
        ]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert seen == [(4, 5), (3, 4), (2, 3), (1, 2), (1, 1)]


def test_a_level_keeps_stopped_sales() -> None:
    change(Switches(stopped_sales=frozenset({"12"}), comments_stopped=True))
    body = {"level": "normal", "version": 1, "reason": "It is over."}
    after = ops("PUT", "/level", body).body
    assert after["level"] == "normal"
    assert (after["switches"]["stopped_sales"], after["switches"]["comments_stopped"]) == (
        ["12"],
        False,
    )


def test_an_operator_does_not_overwrite_another_one() -> None:
    change(READ_ONLY)
    body = {"level": "normal", "version": 0, "reason": "I did not see it."}
    refused = ops("PUT", "/level", body, operator=OTHER)
    assert (refused.status, refused.problem) == (409, "switches-changed")
    for version in (2, 9):
        with pytest.raises(SwitchesChanged):
            change(Switches(), version)
    assert ops("GET", "").body["switches"]["read_only"] is True


def test_of_concurrent_changes_one_is_stored(
    plaza: World, mysql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given two operators who both read version 0, the other one commits first."""
    lock_newest = mysql_store.lock_newest

    def lock_and_be_overtaken(cursor: Any) -> SwitchChange:
        newest = lock_newest(cursor)
        with connect_mysql(mysql_url) as other, other.cursor() as insert:
            mysql_store.insert(insert, 1, Switches(), "first", OTHER)
            other.commit()
        return newest

    monkeypatch.setattr(mysql_store, "lock_newest", lock_and_be_overtaken)
    with pytest.raises(SwitchesChanged):
        change(READ_ONLY)
    assert mysql_store.read_newest().reason == "first"
    assert current() == Switches()


def test_a_repeat_after_a_lost_answer_changes_nothing() -> None:
    body = {"level": "relieved", "version": 0, "reason": "The evening."}
    first = ops("PUT", "/level", body)
    assert ops("PUT", "/level", body).body == first.body
    assert ops("PUT", "/level", body, operator=OTHER).status == 409
    assert mysql.fetch_all("SELECT COUNT(*) FROM switch_change") == [(1,)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"reads_factor": 0.01},
        {"anonymous_factor": 100},
        {"log_sample_rate": 0},
        {"stopped_sales": ["abc"]},
        {"stopped_sales": [str(n + 1) for n in range(101)]},
        {"unknown": True},
        {"read_only": "yes"},
    ],
)
def test_invalid_switches_are_refused(wrong: dict[str, Any]) -> None:
    switches = ops("GET", "").body["switches"] | wrong
    reply = ops("PUT", "", {"switches": switches, "version": 0, "reason": "Why not."})
    assert (reply.status, reply.problem) == (400, "invalid-request")
    assert ops("PUT", "/level", {"level": "normal", "version": 0, "reason": " "}).status == 400


# ---------------------------------------------------------------- copies


def test_a_process_reads_the_copy_in_a_round_trip_that_it_makes_anyway(
    plaza: World, later: Callable[[float], None]
) -> None:
    identify()  # loads the scripts
    change(READ_ONLY)
    be_new_process()
    for node in redis.nodes().values():
        redis.send_to_node(node, [("PING",)])  # connects
    before = statements()
    assert count_trips(identify) == 1
    assert current() == READ_ONLY
    assert statements() - before == 1, "counting itself"
    redis.execute("DEL", redis_store.KEY)
    identify()
    assert redis.execute("EXISTS", redis_store.KEY) == 0, "not read again"
    later(MAX_AGE_S)
    identify()
    assert redis.execute("EXISTS", redis_store.KEY) == 1, "stored again, from MySQL"
    assert current() == READ_ONLY


def test_a_like_costs_no_further_round_trip(plaza: World, later: Callable[[float], None]) -> None:
    plaza.add(POST)
    token = new_session.open_session(7)
    path = f"/posts/{POST.id}/likes/me"

    def like() -> int:
        return send("PUT", path, token=token, folder="api/reactions").status

    assert like() == 200
    later(MAX_AGE_S)
    assert switch_state.is_due()
    assert count_trips(like) == 2, "session, limit and switches; the gate"
    assert not switch_state.is_due()


def test_a_change_reaches_another_process_at_its_next_due_request(
    plaza: World, later: Callable[[float], None]
) -> None:
    identify()
    switches = replace(READ_ONLY, reads_factor=2.0)
    redis_store.store(1, switches)  # by another process
    identify()
    assert current() == Switches()
    later(MAX_AGE_S)
    identify()
    assert current() == switches


def test_an_older_copy_does_not_replace_a_newer_one(plaza: World) -> None:
    redis_store.store(2, READ_ONLY)
    redis_store.store(1, Switches())
    assert refresh.read() == READ_ONLY


def test_a_change_whose_store_in_redis_was_lost_is_found_by_one_process(
    plaza: World, later: Callable[[float], None]
) -> None:
    """Given an operator's process that ends between MySQL and Redis."""
    identify()
    mysql.write(
        "INSERT INTO switch_change (version, document, reason, changed_by) VALUES (1, %s, '', 1)",
        (SWITCHES.encode(READ_ONLY),),
    )
    later(MAX_AGE_S)
    identify()
    assert current() == Switches()
    later(redis_store.COMPARE_AFTER_S)
    assert redis_store.claim_comparison(), "by another process"
    identify()
    assert current() == Switches()
    redis.execute("DEL", f"{redis_store.KEY}:comparison")
    later(MAX_AGE_S)
    identify()
    assert current() == READ_ONLY
    be_new_process()
    before = statements()
    assert refresh.read() == READ_ONLY
    assert statements() - before == 1, "counting itself; Redis has the change now"


def test_without_redis_the_switches_come_from_mysql(plaza: World, redis_away: Away) -> None:
    with redis_away():
        change(READ_ONLY)
        be_new_process()
        identify()
        assert current() == READ_ONLY
        before = statements()
        identify()
        assert statements() - before == 1, "counting itself; not due"
    identify()
    assert redis.execute("HGET", redis_store.KEY, "version") == "1"


def test_without_mysql_the_last_known_switches_hold(
    plaza: World,
    mysql_away: Away,
    later: Callable[[float], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    change(READ_ONLY)
    with mysql_away():
        later(redis_store.COMPARE_AFTER_S + 1)
        capsys.readouterr()
        for _ in range(3):
            later(MAX_AGE_S)
            identify()
            assert current() == READ_ONLY
        assert len(read_log(capsys, "switches_unread")) == 1, "one process tries, every 10 s"
        be_new_process()
        identify()
        assert current() == READ_ONLY, "Redis has them"
        redis.execute("DEL", redis_store.KEY)
        later(MAX_AGE_S)
        identify()
        assert current() == READ_ONLY, "this process has them"
        be_new_process()
        identify()
        assert current() == Switches(), "nothing has them"
        with pytest.raises(MysqlDown):
            change(Switches(), 1)


@pytest.mark.parametrize("document", ["{", "[]", '{"stopped_sales": 3}', "null"])
def test_switches_that_cannot_be_read_are_recorded_and_change_nothing(
    plaza: World, document: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mysql.write(
        "INSERT INTO switch_change (version, document, reason, changed_by) VALUES (1, %s, '', 1)",
        (document,),
    )
    assert refresh.read() == Switches()
    [line] = read_log(capsys, "switches_unread")
    assert line["switches_unread"] == 1


def test_fields_of_another_version_are_ignored_or_normal(plaza: World) -> None:
    assert SWITCHES.decode('{"read_only": true, "new_field": 1}') == READ_ONLY
    sale = Switches(stopped_sales=frozenset({"2", "1"}))
    assert SWITCHES.decode(SWITCHES.encode(sale)) == sale


# ---------------------------------------------------------------- what switches stop


def switched_off(reply: Reply) -> bool:
    if reply.status != 503 or reply.problem != "switched-off":
        return False
    assert reply.headers["retry-after"] == "30"
    assert reply.body["detail"]
    return True


def call(route: Route, operator: int = OPERATOR) -> Reply:
    if route.security == SERVER:
        key = make_server_key(f"app-{route.method.lower()}", {"act"}, 1_000, operator_id="test")[1]
        return route.call(f"Bearer {key}", body="{}")
    return route.call(f"Bearer {new_session.open_session(operator)}", body="{}")


def test_read_only_stops_each_route_that_changes_something(plaza: World) -> None:
    change(replace(READ_ONLY, writes_factor=10.0))  # all routes are called at once
    stopped = {route.name for route in ROUTES if switched_off(call(route))}
    assert stopped == {route.key for route in DECLARED if route.switch is not None}
    assert len(stopped) > 30
    assert mysql.fetch_all("SELECT COUNT(*) FROM reaction_log") == [(0,)]


def held(reply: Reply) -> bool:
    if reply.status != 503 or reply.problem != "switched-off":
        return False
    assert reply.headers["retry-after"] == "5"
    return True


def test_held_readers_are_asked_to_wait_by_each_route_that_reads(plaza: World) -> None:
    change(replace(LEVELS["warming"], reads_factor=10.0, anonymous_factor=10.0))
    query = "POST /reactions/query"
    reading = [route for route in ROUTES if route.method == "GET" or route.name == query]
    waiting = {route.name for route in reading if held(call(route, operator=7))}
    assert waiting == {route.key for route in DECLARED if route.is_held}
    assert {"GET /posts/{post_id}", "GET /feed", "GET /shops/{shop_id}", query} <= waiting
    assert waiting.isdisjoint({"GET /orders/{order_id}", "GET /openapi.json", "GET /ops/switches"})
    of_admins = {route.name for route in reading if held(call(route))}
    assert of_admins == {"GET /totals"}, "admins read, but a route without callers"


def test_held_readers_change_what_they_like(plaza: World) -> None:
    change(LEVELS["warming"])
    plaza.add(POST)
    token = new_session.open_session(7)
    liked = send("PUT", f"/posts/{POST.id}/likes/me", token=token, folder="api/reactions")
    assert liked.status == 200


def test_a_missing_session_is_reported_before_a_switch(plaza: World) -> None:
    change(READ_ONLY)
    assert send("PUT", f"/posts/{POST.id}/likes/me", folder="api/reactions").status == 401


POSTS, COMMENTS = {"POST /posts", "PATCH /posts/{post_id}"}, {"POST /posts/{post_id}/comments"}


@pytest.mark.parametrize(
    ("switches", "stopped"),
    [
        (Switches(), set()),
        (Switches(posts_stopped=True), POSTS),
        (Switches(comments_stopped=True), COMMENTS),
        (Switches(stopped_sales=frozenset({"11"})), {"POST /vouchers/{voucher_id}/orders"}),
        (Switches(stopped_sales=frozenset({"12"})), set()),
        (LEVELS["relieved"], set()),
        (LEVELS["essential"], POSTS | COMMENTS),
    ],
    ids=lambda value: level_of(value) if isinstance(value, Switches) else None,
)
def test_a_switch_stops_its_routes_only(
    plaza: World, switches: Switches, stopped: set[str]
) -> None:
    change(replace(switches, writes_factor=10.0))  # all routes are called at once
    own = [route for route in ROUTES if route.method != "GET" and "/ops/" not in route.path]
    assert {route.name for route in own if switched_off(call(route))} == stopped


@pytest.mark.parametrize("switches", [READ_ONLY, Switches(sign_ups_stopped=True)])
def test_without_sign_ups_users_sign_in_and_new_phones_get_503(
    plaza: World, switches: Switches
) -> None:
    request_code()
    assert sign_in(read_code()).status == 201
    change(switches)
    newcomer = "+12025550199"
    request_code(newcomer)
    code = read_code(newcomer)
    assert switched_off(sign_in(code, newcomer))
    change(Switches(), 1)
    assert sign_in(code, newcomer).status == 201, "the code still works"
    request_code(source="203.0.113.99")


def test_an_operator_signs_in_and_ends_read_only_mode_in_all_levels(plaza: World) -> None:
    for version, level in enumerate(LEVELS):
        body = {"level": level, "version": version, "reason": "A drill."}
        reply = ops("PUT", "/level", body)
        assert (reply.status, reply.body["level"]) == (200, level)


def test_factors_change_rate_limits(plaza: World) -> None:
    change(Switches(reads_factor=0.5, writes_factor=2.0, anonymous_factor=0.1))
    reads, writes = bucket_of_user(7, "GET /users/me"), bucket_of_user(7, WRITE)
    assert (reads.per_s, reads.burst) == (10, 50)
    assert (writes.per_s, writes.burst) == (10, 100)
    network = anonymous_bucket(HOME)
    assert (network.per_s, network.burst) == (5, 50)
    began_s = time.monotonic()
    allowed = [limits.acquire(network) for _ in range(60)].count(0)
    refilled = 5 * (time.monotonic() - began_s)
    assert 50 <= allowed <= 51 + refilled


def test_a_sample_of_the_successful_requests_is_logged(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    change(Switches(log_sample_rate=0.001))
    capsys.readouterr()
    for _ in range(30):
        send("GET", "/openapi.json", folder="api/system")
    logged = read_log(capsys, "request_served")
    assert len(logged) < 10
    assert all(line["sample_rate"] == 0.001 for line in logged)
    empty(anonymous_bucket(HOME))
    for _ in range(5):
        assert send("GET", "/openapi.json", folder="api/system").status == 429
    assert len(read_log(capsys, "request_served")) == 5, "a line with a metric is always written"


@pytest.mark.parametrize(
    ("setting", "switch", "rate"), [("0.001", 1, 0.001), ("0.5", 0.001, 0.001)]
)
def test_the_setting_of_a_deployment_and_the_switch_lower_the_share_that_is_logged(
    setting: str,
    switch: float,
    rate: float,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PLAZA_LOG_SAMPLE_RATE", setting)
    be_new_process()
    change(Switches(log_sample_rate=switch))
    capsys.readouterr()
    for _ in range(30):
        assert send("GET", "/openapi.json", folder="api/system").status == 200
    logged = read_log(capsys, "request_served")
    assert len(logged) < 10
    assert all(line["sample_rate"] == rate for line in logged)


def test_errors_and_what_operators_change_are_always_logged(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAZA_LOG_SAMPLE_RATE", "0.000001")
    be_new_process()
    body = {"level": "normal", "version": 0, "reason": "A test."}
    token = new_session.open_session(7)
    capsys.readouterr()
    assert ops("PUT", "/level", body).status == 200
    for method, status in (("GET", 403), ("PUT", 403)):
        path = "/ops/switches" + ("/level" if method == "PUT" else "")
        sent = body if method == "PUT" else None
        assert send(method, path, sent, token=token, folder="api/operations").status == status
    assert send("GET", "/nothing", folder="api/system").status == 404
    assert send("GET", "/users/me?no=1", token=token, folder="api/users").status == 400
    assert send("GET", "/users/me", folder="api/users").status == 401
    assert ops("GET", "").status == 200, "which reads only"
    logged = read_log(capsys, "request_served")
    assert [(line["status"], line["caller_id"]) for line in logged] == [
        *((200, str(OPERATOR)), (403, "7"), (403, "7"), (404, None), (400, "7"), (401, None)),
    ]
    assert not any("sample_rate" in line for line in logged)


def test_a_stopped_request_is_counted_and_is_no_server_error(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    change(replace(READ_ONLY, log_sample_rate=0.001))
    token = new_session.open_session(7)
    capsys.readouterr()
    send("PUT", f"/posts/{POST.id}/likes/me", token=token, folder="api/reactions")
    [line] = read_log(capsys, "request_served")
    assert (line["status"], line["requests_switched_off"]) == (503, 1)
    assert "server_errors" not in line
    assert "error" not in line


# ---------------------------------------------------------------- cached lists only


def get_ranking(window: str = "all") -> Reply:
    return send("GET", f"/posts/ranking?window={window}", folder="api/recommendations")


def test_a_ranking_that_is_not_built_is_503_with_the_reason(plaza: World) -> None:
    assert get_ranking().status == 200, "from MySQL"
    change(Switches(cached_lists_only=True))
    for window in ("all", "day", "week"):
        reply = get_ranking(window)
        assert switched_off(reply)
        assert "cache only" in reply.body["detail"]


def test_a_built_ranking_is_served_as_it_was_and_not_rebuilt(
    plaza: World, later: Callable[[float], None]
) -> None:
    mysql.write(
        "INSERT INTO content (content_type, content_id, author_id, title, body) VALUES"
        " ('post', 21, 9, 'A', 'a'), ('post', 22, 9, 'B', 'b')"
    )
    mysql.write(
        "INSERT INTO counter (target_type, target_id, kind, total, version, ranked)"
        " VALUES ('post', 21, 'like', 5, 1, 5)"
    )
    assert post_rankings.refresh_rankings() == 1
    [before] = get_ranking().body["items"]
    change(Switches(cached_lists_only=True))
    mysql.write(
        "INSERT INTO counter (target_type, target_id, kind, total, version, ranked)"
        " VALUES ('post', 22, 'like', 9, 1, 9)"
    )
    assert post_rankings.refresh_rankings() == 0
    later(2)  # the texts leave this process
    assert get_ranking().body["items"] == [before]
    change(Switches(), 1)
    assert post_rankings.refresh_rankings() == 2
    assert [item["id"] for item in get_ranking().body["items"]] == ["22", "21"]


def test_recommendations_are_not_rebuilt_and_unknown_texts_are_left_out(
    plaza: World, later: Callable[[float], None]
) -> None:
    mysql.write("INSERT INTO shop (id, name) VALUES (5, 'Bistro')")
    mysql.write(
        "INSERT INTO content (content_type, content_id, author_id, parent_id, body)"
        " VALUES ('review', 31, 9, 5, 'Good.')"
    )
    path = "/shops/5/reviews/recommended"

    def get() -> list[str]:
        reply = send("GET", path, folder="api/recommendations")
        return [item["id"] for item in reply.body["items"]]

    recommend.rebuild_recommendations([RebuildLists([5])])
    change(Switches(cached_lists_only=True))
    assert get() == [], "the text is not cached"
    assert recommend.refresh_recommendations() == 0
    change(Switches(), 1)
    assert get() == ["31"]
    change(Switches(cached_lists_only=True), 2)
    later(2)
    assert get() == ["31"]
    redis.execute("FLUSHALL")
    plaza.queues.take(RECOMMENDATIONS)
    assert get() == []
    assert plaza.queues.take(RECOMMENDATIONS) == [], "no rebuild is requested"

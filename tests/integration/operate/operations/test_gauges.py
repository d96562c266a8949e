"""Gauges on real servers: read now, and sampled once a minute for plots."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from bench.round_trips import count_round_trips
from plaza.commerce.checkins import daily_checkin
from plaza.commerce.checkins.gauges import read_checkin_outboxes
from plaza.commerce.flash_sales import place_order
from plaza.commerce.flash_sales.gauges import read_orders
from plaza.core.reactions import LIKE, Target, react, sweep
from plaza.core.reactions.gauges import read_outboxes, read_saved
from plaza.infra.derived import ids
from plaza.infra.jobs import scheduled_jobs
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.queues import spill
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock
from plaza.operate.operations import gauges
from plaza.operate.operations.gauges import RETAINED_MIN, Meter
from plaza.operate.reconciliation import orchestrator
from plaza.operate.reconciliation.gauges import audit_active, read_newest_run
from tests.integration.conftest import Away
from tests.support import sales
from tests.support.consumers import statements
from tests.support.failures import failing
from tests.support.functions import authorization, event, handler
from tests.support.plaza import World
from tests.support.stores import add_users

POST = Target("post", 11)
NOW_S = 1_795_348_830  # 30 s after the begin of a minute
MINUTE = NOW_S // 60
QUEUES = {"queues": "reactions,reactions_dlq", "queues_url": "reactions"}


@pytest.fixture
def at(plaza: World, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """``at(5)``: it is five minutes after ``NOW_S`` from here on."""

    def set_minute(minute: int) -> None:
        monkeypatch.setattr(clock, "now_s", lambda: float(NOW_S + minute * 60))

    set_minute(0)
    return set_minute


def fixed(**values: float) -> Meter:
    return lambda: values


def series(minutes: int) -> dict[str, list[float | None]]:
    """Return name, or name and queue, -> values."""
    return {
        name if queue is None else f"{name} {queue}": values
        for name, queue, values in gauges.read_series(minutes)[1]
    }


# ---------------------------------------------------------------- samples


def test_each_minute_has_a_value_or_none(at: Callable[[int], None]) -> None:
    for minute, value in ((0, 5.0), (1, 6.5), (4, 7.0)):
        at(minute)
        gauges.take_sample([fixed(lag_s=value), fixed(**{"backlog:orders": minute})])
    assert gauges.read_series(3)[0] == MINUTE + 2
    assert series(5) == {
        "backlog orders": [0, 1, None, None, 4],
        "lag_s": [5.0, 6.5, None, None, 7.0],
    }
    assert series(1) == {"backlog orders": [4], "lag_s": [7.0]}


def test_a_second_sample_of_a_minute_replaces_the_first(at: Callable[[int], None]) -> None:
    for value in (1, 2):
        gauges.take_sample([fixed(outboxes=value)])
    assert series(1) == {"outboxes": [2]}


def test_a_total_is_shown_as_its_increase_a_minute(at: Callable[[int], None]) -> None:
    for minute, total in ((0, 1_000), (1, 1_600), (3, 1_900), (4, 20), (5, 30), (12, 99)):
        at(minute)
        gauges.take_sample([fixed(saved_total=total)])
    expected = [None, 600, None, 150, None, 10, *[None] * 7]
    assert series(13) == {"saved_per_min": expected}, "none after a restore or a gap"
    at(5)
    assert series(1) == {"saved_per_min": [10]}, "the minute before the plot counts"


def test_a_gauge_whose_store_is_unavailable_is_left_out(
    at: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        gauges.take_sample([failing(RedisDown("down, simulated by a test")), fixed(outboxes=1)])
        == 1
    )
    assert series(1) == {"outboxes": [1]}
    [line] = [li for li in capsys.readouterr().out.splitlines() if "gauges_unavailable" in li]
    assert json.loads(line)["meter"] == "fail"


def test_a_defect_of_a_meter_is_not_hidden(at: Callable[[int], None]) -> None:
    with pytest.raises(ZeroDivisionError):
        gauges.take_sample([lambda: {"x": 1 / 0}])


def test_samples_are_kept_for_a_day(at: Callable[[int], None]) -> None:
    for minute in (0, 1, RETAINED_MIN):
        at(minute)
        gauges.take_sample([fixed(outboxes=1)])
    at(RETAINED_MIN + gauges.MAX_GAP_MIN + 1)
    assert gauges.delete_expired(1_000) == 1
    assert [m for (m,) in mysql.fetch_all("SELECT minute FROM gauge_sample")] == [
        MINUTE + 1,
        MINUTE + RETAINED_MIN,
    ]


def test_the_hourly_deletion_includes_samples(plaza: World) -> None:
    mysql.write("INSERT INTO gauge_sample (minute, gauges) VALUES (7, '{}')")
    deleted = handler("schedule/delete_expired")(event("delete_expired.schedule"), None)
    assert deleted["gauge_sample"] == 1


def test_a_day_of_samples_is_one_statement(at: Callable[[int], None]) -> None:
    before = statements()
    gauges.read_series(RETAINED_MIN)
    assert statements() - before - 1 == 1


# ---------------------------------------------------------------- gauges of contexts


def test_outboxes_are_counted_and_the_age_of_an_entry_is_theirs(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_outboxes() == {"outboxes": 0, "outbox_age_s": 0.0}
    plaza.add(POST)
    for actor in (1, 2):
        react.react(LIKE, POST, actor, True)
    now_us = clock.now_us()
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now_us", lambda: now_us + 90_000_000)
        result = read_outboxes()
        assert result["outboxes"] == 1
        assert result["outbox_age_s"] == pytest.approx(90, abs=5)
    sweep.sweep_outbox(resend_after_us=0)
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now_us", lambda: now_us + 90_000_000)
        assert read_outboxes() == result, "a sweep does not make entries younger"


def test_outboxes_of_check_ins_are_counted(plaza: World) -> None:
    add_users(7)
    assert read_checkin_outboxes() == {"checkin_outboxes": 0, "checkin_outbox_age_s": 0.0}
    daily_checkin.check_in(7)
    assert read_checkin_outboxes()["checkin_outboxes"] == 1
    plaza.queues.drain()
    assert read_checkin_outboxes()["checkin_outboxes"] == 0


def test_outboxes_cost_one_round_trip_for_any_number(plaza: World) -> None:
    targets = [Target("post", number) for number in range(1, 60)]
    plaza.add(*targets)
    for target in targets:
        react.react(LIKE, target, 2, True)
    with count_round_trips() as trips:
        assert read_outboxes()["outboxes"] == 59
    assert trips.sent == 1


def test_spilled_messages_are_counted(plaza: World) -> None:
    assert spill.read_gauges() == {"spilled_messages": 0}
    spill.spill("reactions", "{}")
    assert spill.read_gauges() == {"spilled_messages": 1}


def test_saved_reactions_are_counted(plaza: World) -> None:
    plaza.add(POST)
    react.react(LIKE, POST, 6, True)
    plaza.queues.drain()
    before = read_saved()["reactions_saved_total"]
    for actor in range(1, 6):
        react.react(LIKE, POST, actor, True)
    assert read_saved()["reactions_saved_total"] == before
    plaza.queues.drain()
    assert read_saved()["reactions_saved_total"] == before + 5


def test_orders_of_the_last_whole_minute_are_counted(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    voucher = sales.offer(stock=9)
    for buyer in (1, 2):
        place_order.place_order(voucher.id, buyer)
    made_s = ids.created_at_s(place_order.place_order(voucher.id, 3)[0].id)
    monkeypatch.setattr(clock, "now_s", lambda: made_s // 60 * 60 + 61.0)
    assert read_orders() == {"orders_per_min": 0}
    plaza.queues.drain()
    assert read_orders()["orders_per_min"] in (1, 2, 3), "a minute may begin between two orders"
    mysql.write("UPDATE voucher_order SET order_id = order_id - %s", (120 << 32,))
    assert read_orders() == {"orders_per_min": 0}


def test_drift_is_that_of_the_audit_and_of_the_newest_run(plaza: World) -> None:
    plaza.add(POST)
    react.react(LIKE, POST, 2, True)
    plaza.queues.drain()
    assert (audit_active(), read_newest_run()) == ({"drift": 0}, {})
    mysql.write("UPDATE counter SET total = 4 WHERE kind = 'like'")
    assert audit_active() == {"drift": 6}
    orchestrator.start()
    plaza.queues.drain()
    assert audit_active() == {"drift": 0}
    newest_run = read_newest_run()
    assert newest_run["differences_found"] >= 2
    assert newest_run["differences_open"] == 0


# ---------------------------------------------------------------- the function and the routes


def test_a_sample_has_the_gauges_of_all_contexts(set_up: Callable[..., None], plaza: World) -> None:
    set_up(**QUEUES)
    plaza.queues.messages["reactions"] = ["a", "b"]
    plaza.queues.messages["reactions_dlq"] = ["c"]
    handler("schedule/follow_binlog")(event("follow_binlog.schedule"), None)
    sample = handler("schedule/sample_gauges")(event("sample_gauges.schedule"), None)
    result = series(1)
    assert sample == {"gauges": 16}
    assert (result["backlog reactions"], result["dead_letters reactions"]) == ([2], [1])
    assert set(result) == {
        "backlog reactions",
        "binlog_lag_s",
        "changes_age_h",
        "checkin_outbox_age_s",
        "checkin_outboxes",
        "dead_letters reactions",
        "drift",
        "orders_per_min",
        "outbox_age_s",
        "outboxes",
        "polls_per_min",
        "reactions_saved_per_min",
        "cycle_late_h",
        "cycle_progress_pct",
        "screens",
        "spilled_messages",
    }


def test_a_sample_without_redis_has_the_gauges_of_mysql(plaza: World, redis_away: Away) -> None:
    with redis_away():
        handler("schedule/sample_gauges")(event("sample_gauges.schedule"), None)
    result = series(1)
    assert "outboxes" not in result
    assert result["spilled_messages"] == [0]


def test_a_sample_without_mysql_fails(plaza: World, mysql_away: Away) -> None:
    with mysql_away(), pytest.raises(MysqlDown):
        handler("schedule/sample_gauges")(event("sample_gauges.schedule"), None)
    run = scheduled_jobs.read_runs()["sample_gauges"]
    assert (run.error, run.succeeded_ms) == ("MysqlDown", None)


def get(name: str, **changes: Any) -> tuple[int, Any]:
    response = handler("api/operations")(event(f"operations.{name}") | changes, None)
    assert response["headers"]["cache-control"] == "no-store"
    return response["statusCode"], json.loads(response["body"])


def test_an_admin_reads_series(at: Callable[[int], None]) -> None:
    gauges.take_sample([fixed(**{"backlog:orders": 3, "saved_total": 5})])
    query = {"queryStringParameters": {"minutes": "2"}}
    status, body = get("list_series", **query)
    assert (status, body) == (
        200,
        {
            "minutes": ["2026-11-22T11:59:00.000000Z", "2026-11-22T12:00:00.000000Z"],
            "series": [
                {"name": "backlog", "queue": "orders", "values": [None, 3.0]},
                {"name": "saved_per_min", "queue": None, "values": [None, None]},
            ],
        },
    )
    assert len(get("list_series")[1]["minutes"]) == 60


@pytest.mark.parametrize("minutes", ["0", "1441", "x", "-1", ""])
def test_an_invalid_number_of_minutes_is_refused(plaza: World, minutes: str) -> None:
    query = {"queryStringParameters": {"minutes": minutes}}
    assert get("list_series", **query)[0] == 400


def test_an_admin_reads_the_lag(set_up: Callable[..., None], plaza: World) -> None:
    set_up(**QUEUES)
    plaza.add(POST)
    react.react(LIKE, POST, 2, True)
    handler("schedule/sweep_outbox")(event("sweep_outbox.schedule"), None)
    status, body = get("get_lag")
    assert status == 200
    assert [(item["name"], item["backlog"]) for item in body["queues"]] == [("reactions", 1)]
    assert body["gauges"]["outboxes"] == 1
    [sweep] = body["schedules"]
    assert (sweep["name"], sweep["outcome"], sweep["error"]) == ("sweep_outbox", "succeeded", None)
    assert sweep["result"]["republished"] == 0


def test_the_lag_without_redis_and_sqs_is_that_of_mysql(
    set_up: Callable[..., None], plaza: World, redis_away: Away
) -> None:
    set_up(**QUEUES)
    plaza.queues.away = True
    with redis_away():
        status, body = get("get_lag")
    assert status == 200
    assert body == {"queues": None, "gauges": {"spilled_messages": 0.0}, "schedules": None}


@pytest.mark.parametrize("name", ["get_lag", "list_series"])
def test_lag_and_series_are_for_admins(plaza: World, name: str) -> None:
    headers = event(f"operations.{name}")["headers"] | authorization(7)
    assert get(name, headers=headers)[0] == 403

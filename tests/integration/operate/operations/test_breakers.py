"""Breakers of several processes, reported through a real Redis."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bench.round_trips import count_round_trips
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis import breaker_reports, connections, redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.shards import SHARDS
from plaza.infra.runtime import clock, dependencies
from plaza.operate.operations import breakers
from plaza.operate.operations.breakers import BreakerReport
from tests.integration.conftest import Away
from tests.support.failures import failing
from tests.support.functions import authorization, event, handler
from tests.support.keyspace import find_keys
from tests.support.plaza import World

KEY = "{7}:a"


@pytest.fixture
def mysql_fails(plaza: World) -> Iterator[Callable[[], None]]:
    """``mysql_fails()`` makes MySQL fail until the breaker of this process opens."""

    def fail() -> None:
        while mysql.MYSQL.state == "closed":
            with pytest.raises(MysqlDown):
                mysql.MYSQL.call(failing(OSError("lost, simulated by a test")))

    yield fail
    mysql.MYSQL.breaker.close()


def become_another_process() -> None:
    """Report from here on as a new process, whose breakers are closed."""
    mysql.MYSQL.breaker.close()
    dependencies.unreported.clear()
    breaker_reports._process.reset()


def report_of(dependency: str = "MySQL") -> BreakerReport:
    [report] = [item for item in breakers.read_breakers()[0] if item.dependency == dependency]
    return report


def test_breakers_that_never_opened_are_closed(plaza: World) -> None:
    result, is_complete = breakers.read_breakers()
    assert is_complete
    assert [item.dependency for item in result] == ["Redis", "MySQL", "SQS", "S3"]
    assert not [item for item in result if item.is_open or item.opened_ms or item.closed_ms]


def test_a_breaker_that_opens_is_reported_with_the_next_command(
    mysql_fails: Callable[[], None],
) -> None:
    mysql_fails()
    assert find_keys("*:breakers") == []
    with count_round_trips() as trips:
        redis.execute("GET", KEY)
    assert trips.sent == 1
    assert find_keys("*:breakers") == ["{7}:breakers"]
    become_another_process()
    report = report_of()
    assert (report.own, report.open_in, report.is_open) == ("closed", {"local": 1}, True)
    assert report.opened_ms is not None
    assert report.closed_ms is None


def test_a_breaker_that_closes_is_closed_in_any_shard(mysql_fails: Callable[[], None]) -> None:
    mysql_fails()
    redis.execute("GET", KEY)
    mysql.MYSQL.breaker.close()
    redis.execute("GET", "{8}:a")
    report = report_of()
    assert (report.is_open, report.open_in) == (False, {})
    assert report.closed_ms is not None
    assert report.opened_ms is not None
    assert report.closed_ms >= report.opened_ms


def test_open_breakers_are_counted_by_process(mysql_fails: Callable[[], None]) -> None:
    for _ in range(3):
        mysql_fails()
        redis.execute("GET", KEY)
        become_another_process()
    assert report_of().open_in == {"local": 3}


def test_a_report_of_a_process_that_ended_is_not_believed_after_a_minute(
    mysql_fails: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mysql_fails()
    redis.execute("GET", KEY)
    become_another_process()
    now_ms = clock.now_ms()
    monkeypatch.setattr(clock, "now_ms", lambda: now_ms + breakers.OPEN_FOR_S * 1000 + 1_000)
    report = report_of()
    assert (report.is_open, report.open_in) == (False, {})
    assert report.opened_ms is not None


def test_the_outage_of_redis_is_reported_after_it(plaza: World, redis_away: Away) -> None:
    with redis_away():
        for _ in range(connections.REDIS.breaker.fail_max):
            with pytest.raises(RedisDown):
                redis.execute("GET", KEY)
        result, is_complete = breakers.read_breakers()
        [of_redis] = [item for item in result if item.dependency == "Redis"]
        assert (is_complete, of_redis.own, of_redis.is_open) == (False, "open", True)
        kept = list(dependencies.unreported)
    assert [change.state for change in kept] == ["open"]
    dependencies.unreported.extend(kept)  # the fixture resets the process
    redis.execute("GET", KEY)
    after = report_of("Redis")
    assert (after.own, after.is_open) == ("closed", True)


def test_nothing_is_sent_while_the_breaker_of_redis_is_not_closed(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    dependencies.unreported.append(dependencies.BreakerChange("SQS", "open", clock.now_ms()))
    connections.REDIS.breaker.half_open()
    redis.execute("GET", KEY)  # closes it
    assert find_keys("*:breakers") == []
    redis.execute("GET", KEY)
    assert report_of("SQS").is_open


def test_the_reports_of_a_shard_are_bounded(plaza: World) -> None:
    for number in range(breaker_reports.MAX_BREAKER_REPORTS + 20):
        breaker_reports._process.reset()
        dependencies.unreported.append(dependencies.BreakerChange("SQS", "open", number))
        redis.execute("GET", KEY)
    assert redis.execute("ZCARD", "{7}:breakers") == breaker_reports.MAX_BREAKER_REPORTS
    assert 0 < redis.execute("TTL", "{7}:breakers") <= breaker_reports.BREAKER_REPORT_TTL_S


def test_a_command_without_a_key_carries_no_report(plaza: World) -> None:
    dependencies.unreported.append(dependencies.BreakerChange("SQS", "open", 1))
    redis.execute("PING")
    assert find_keys("*:breakers") == []
    assert len(dependencies.unreported) == 1


def test_reading_all_reports_is_one_round_trip(plaza: World) -> None:
    redis.pipeline(
        [("ZADD", f"{{{shard}}}:breakers", 5, f"SQS:f:{shard}:open") for shard in range(SHARDS)]
    )
    with count_round_trips() as trips:
        breakers.read_breakers()
    assert trips.sent == 1


# ---------------------------------------------------------------- the route


def get(**changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = handler("api/operations")(
        event("operations.get_breakers") | changes, None
    )
    return document


def test_an_admin_reads_the_breakers(mysql_fails: Callable[[], None]) -> None:
    mysql_fails()
    redis.execute("GET", KEY)
    response = get()
    assert response["statusCode"] == 200
    assert response["headers"]["cache-control"] == "no-store"
    document = json.loads(response["body"])
    [of_mysql] = [items for items in document["items"] if items["dependency"] == "MySQL"]
    assert document["complete"] is True
    assert of_mysql["last_opened_at"].endswith("Z")
    assert {name: of_mysql[name] for name in ("state", "own", "open_in")} == {
        "state": "open",
        "own": "open",
        "open_in": {"local": 1},
    }


def test_breakers_are_for_admins(plaza: World) -> None:
    headers = event("operations.get_breakers")["headers"] | authorization(7)
    assert get(headers=headers)["statusCode"] == 403

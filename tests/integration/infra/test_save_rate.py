"""The rate of saving: all consumers together, on a real Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.round_trips import count_round_trips
from plaza.commerce.checkins import persist as checkins_persist
from plaza.commerce.checkins.model import CheckInEvent
from plaza.commerce.flash_sales import OrderEvent
from plaza.commerce.flash_sales import persist as flash_sales_persist
from plaza.core.reactions import persist
from plaza.infra.mysql import mysql
from plaza.infra.queues import save_rate
from plaza.infra.redis import redis
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import Busy
from plaza.infra.runtime.settings import BadSettings
from tests.integration.conftest import Away
from tests.support.consumers import make_event
from tests.support.plaza import World

PER_S = 1_000
BATCH = 500


@pytest.fixture
def waits_s(plaza: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """A rate of 1,000 rows a second, and the times that consumers wait instead of sleeping."""
    waits: list[float] = []
    monkeypatch.setenv("PLAZA_SAVED_ROWS_PER_S", str(PER_S))
    monkeypatch.setattr(clock, "sleep", waits.append)
    save_rate.save_settings.cache_clear()
    yield waits
    save_rate.save_settings.cache_clear()


def test_a_batch_waits_until_the_rows_before_it_are_paid(waits_s: list[float]) -> None:
    for _ in range(5):
        save_rate.wait_for_turn(BATCH)
    assert len(waits_s) == 4, "the first one begins at once"
    for number, wait_s in enumerate(waits_s, 1):
        assert number * BATCH / PER_S - 0.4 < wait_s <= number * BATCH / PER_S


def test_a_batch_whose_turn_is_late_is_delivered_again_and_takes_nothing(
    waits_s: list[float],
) -> None:
    for _ in range(2):
        save_rate.wait_for_turn(2 * PER_S)  # at 0 s and at 2 s; the next turn is at 4 s
    before = redis.execute("GET", save_rate.KEY)
    for _ in range(3):
        with pytest.raises(Busy, match="1000 rows a second"):
            save_rate.wait_for_turn(1)
    assert redis.execute("GET", save_rate.KEY) == before
    assert len(waits_s) == 1


def test_a_batch_larger_than_the_rate_is_stored(waits_s: list[float]) -> None:
    save_rate.wait_for_turn(60 * PER_S)
    with pytest.raises(Busy):
        save_rate.wait_for_turn(1)
    assert 59 < redis.execute("PTTL", save_rate.KEY) / 1000 <= 60


def test_all_consumers_share_the_rate(waits_s: list[float]) -> None:
    today, now_us = clock.today(), clock.now_us()
    persist.save([make_event(actor) for actor in range(1, BATCH + 1)])
    flash_sales_persist.persist_orders([OrderEvent(5, 3, 7, 1)])
    checkins_persist.persist_checkins([CheckInEvent(user, today, now_us) for user in range(1, 11)])
    assert len(waits_s) == 2
    assert 0 < redis.execute("PTTL", save_rate.KEY) <= BATCH + 1 + 10


def test_nothing_is_stored_before_its_turn(waits_s: list[float]) -> None:
    save_rate.wait_for_turn(10 * PER_S)
    with pytest.raises(Busy):
        persist.save([make_event(7)])
    assert mysql.fetch_all("SELECT COUNT(*) FROM reaction_log") == [(0,)]


def test_without_redis_there_is_no_limit(waits_s: list[float], redis_away: Away) -> None:
    save_rate.wait_for_turn(60 * PER_S)
    with redis_away():
        save_rate.wait_for_turn(1)
    assert waits_s == []


@pytest.mark.parametrize("value", ["", "0"])
def test_without_a_rate_there_is_no_round_trip(
    plaza: World, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("PLAZA_SAVED_ROWS_PER_S", value)
    save_rate.save_settings.cache_clear()
    with count_round_trips() as counter:
        save_rate.wait_for_turn(1)
    assert counter.sent == 0


def test_a_rate_that_is_no_rate_fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAZA_SAVED_ROWS_PER_S", "-1")
    save_rate.save_settings.cache_clear()
    with pytest.raises(BadSettings):
        save_rate.wait_for_turn(1)
    save_rate.save_settings.cache_clear()

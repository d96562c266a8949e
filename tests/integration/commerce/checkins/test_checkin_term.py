"""Check-ins after failovers: what was hydrated under another term is not read."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from local.stack.processes import wait_until
from plaza.commerce.checkins import daily_checkin, mysql_store, persist, redis_store
from plaza.commerce.checkins.model import CheckInEvent
from plaza.commerce.checkins.queues import CHECKINS
from plaza.infra.mysql import mysql
from plaza.infra.redis import connections
from plaza.infra.runtime import clock
from tests.chaos.proxy import Proxy
from tests.support.failures import failing
from tests.support.plaza import World
from tests.support.redis_pair import RedisPair, migrated, pair, proxy

__all__ = ["migrated", "pair", "proxy"]  # fixtures

USER, OTHER = 7, 8
MAX_TERM_AGE_S = 1.0  # of the term that a process knows
TODAY = datetime.now(UTC).date()
YESTERDAY, MONTH = TODAY - timedelta(days=1), TODAY.replace(day=1)


@pytest.fixture
def world(plaza: World, pair: RedisPair) -> World:
    """Hydrate the month of a user who checked in yesterday, and the month before it."""
    mysql.write("INSERT INTO user (id, nickname) VALUES (%s, 'user')", (USER,))
    mysql_store.insert([CheckInEvent(USER, YESTERDAY, clock.now_us())])
    read_days(previous_month())
    assert (read_days(), read_streak()) == (saved_days(), 1)
    pair.wait_until_replicated()
    return plaza


def previous_month() -> date:
    return (MONTH - timedelta(days=1)).replace(day=1)


def read_days(month: date = MONTH) -> list[int]:
    result = daily_checkin.read_month(USER, month)
    assert result.exact
    assert result.days is not None
    return list(result.days)


def saved_days(month: date = MONTH) -> list[int]:
    return [day.day for day in mysql_store.read(USER, month).days]


def read_streak() -> int | None:
    return daily_checkin.read_month(USER, MONTH).streak


def move_to_master(pair: RedisPair, proxy: Proxy) -> None:
    proxy.set("redis", "refuse")
    proxy.set("redis", "pass", target=pair.master.port)


def lose_saved_check_in(world: World, pair: RedisPair, proxy: Proxy) -> None:
    """Check in at the master and save that; the replica, promoted then, has nothing of it."""
    with pair.lose_unreplicated_writes():
        assert daily_checkin.check_in(USER).exact
        world.queues.drain()
    move_to_master(pair, proxy)
    assert TODAY.day in saved_days()


def test_saved_check_in_that_was_not_replicated_is_shown(
    world: World, pair: RedisPair, proxy: Proxy
) -> None:
    lose_saved_check_in(world, pair, proxy)
    assert (read_days(), read_streak()) == (saved_days(), 2)
    assert read_days(previous_month()) == saved_days(previous_month())


def test_check_in_after_one_that_was_not_replicated_continues_its_streak(
    world: World, pair: RedisPair, proxy: Proxy
) -> None:
    """The script is sent again on a new connection, to the new master."""
    with pair.lose_unreplicated_writes():
        day_before = YESTERDAY - timedelta(days=1)
        persist.persist_checkins([CheckInEvent(USER, day_before, clock.now_us())])
    move_to_master(pair, proxy)
    assert daily_checkin.check_in(USER).streak == 3
    world.queues.drain()
    assert (read_days(), read_streak()) == (saved_days(), 3)


def test_check_in_on_a_connection_that_outlived_two_failovers_continues_its_streak(
    world: World, pair: RedisPair
) -> None:
    """The reply that shows the term comes with the script's, which the node has cached."""
    assert redis_store.check_in(OTHER, TODAY, clock.now_us()).state is None
    with pair.lose_unreplicated_writes():
        day_before = YESTERDAY - timedelta(days=1)
        persist.persist_checkins([CheckInEvent(USER, day_before, clock.now_us())])
        sent_s = clock.monotonic_s()
    pair.resume()
    pair.follow()
    pair.fail_over()
    assert wait_until(lambda: clock.monotonic_s() - sent_s > MAX_TERM_AGE_S, 5)
    assert redis_store.check_in(USER, TODAY, clock.now_us()).state is None
    assert daily_checkin.check_in(USER).streak == 3
    world.queues.drain()
    assert (read_days(), read_streak()) == (saved_days(), 3)


def test_month_that_was_not_read_since_the_failover_is_hydrated_again(
    world: World, pair: RedisPair, proxy: Proxy
) -> None:
    """The head of the user was hydrated with another month."""
    day = previous_month()
    with pair.lose_unreplicated_writes():
        persist.persist_checkins([CheckInEvent(USER, day, clock.now_us())])
    move_to_master(pair, proxy)
    assert read_days() == saved_days()
    assert 1 in read_days(day)


@pytest.mark.parametrize("is_new", [True, False])
def test_check_in_between_two_failovers_is_shown(
    world: World, pair: RedisPair, proxy: Proxy, is_new: bool
) -> None:
    """``is_new``: its consumer was never connected to the old master."""
    proxy.set("redis", "refuse")
    assert not daily_checkin.check_in(USER).exact
    pair.fail_over()
    move_to_master(pair, proxy)
    if is_new:
        connections.forget_client()
    assert len(world.queues.messages[CHECKINS]) == 1
    world.queues.drain()
    pair.fail_over()
    move_to_master(pair, proxy)
    assert (read_days(), read_streak()) == (saved_days(), 2)


def test_months_of_one_term_are_hydrated_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql_store, "read", failing(AssertionError("read again")))
    for month in (MONTH, previous_month(), MONTH):
        read_days(month)
    assert daily_checkin.check_in(USER).streak == 2

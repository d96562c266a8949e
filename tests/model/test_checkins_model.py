"""The model of check-ins: after random histories the days and the streak are the accepted ones.

Messages are delivered in any order, some twice; publishes fail; consumers die before they update
Redis; Redis is unavailable, or loses single keys or all of them; time zones change.
"""

from __future__ import annotations

import random
from contextlib import suppress
from datetime import date, timedelta
from typing import Any

import pytest

from plaza.commerce.checkins import (
    CheckInEvent,
    daily_checkin,
    mysql_store,
    persist,
    redis_store,
    sweep,
)
from plaza.commerce.checkins.model import CheckInsKeepChanging, month_of
from plaza.commerce.checkins.queues import CHECKINS
from plaza.commerce.checkins.redis_store import CheckInKeys
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from plaza.people.users import cards, profiles
from tests.integration.commerce.checkins.test_checkins import Clock
from tests.support.depth import read_count
from tests.support.failures import failing
from tests.support.keyspace import find_keys
from tests.support.plaza import World

ADA = 7
KEYS = CheckInKeys(ADA)
SEEDS = range(read_count("PLAZA_MODEL_RUNS", 10, 100))
STEPS = 60
ZONES = ["UTC", "Pacific/Kiritimati", "Etc/GMT+12", "Asia/Shanghai", "America/New_York"]


class History:
    """One random history, the set of accepted days, and of those that a move to the east took: they
    count from the next check-in on, unless that one was accepted without Redis (docs/limits.md)."""

    def __init__(
        self, seed: int, plaza: World, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.rng = random.Random(seed)
        self.queues, self.clock, self.monkeypatch = plaza.queues, clock, monkeypatch
        self.accepted: set[date] = set()
        self.excused: set[date] = set()

    def step(self) -> None:
        """Play one random action."""
        actions = {
            self.check_in: 12, self.check_in_without_queue: 3, self.check_in_without_redis: 4,
            self.go_on: 12, self.move: 1, self.deliver: 4, self.die: 2, self.read: 6,
            self.read_slowly: 4, self.wait_for_mysql: 2, self.sweep: 1, self.lose_a_key: 2,
            self.lose_all: 3, self.check_when_delivered: 5,
        }  # fmt: skip
        self.rng.choices(list(actions), list(actions.values()))[0]()

    def check_in(self) -> None:
        self.accepted.add(daily_checkin.check_in(ADA).today)

    def check_in_without_queue(self) -> None:
        self.queues.away = True
        self.check_in()
        self.queues.away = False

    def check_in_without_redis(self) -> None:
        with self.monkeypatch.context() as patch:
            patch.setattr(redis_store, "check_in", failing(RedisDown("unavailable in this test")))
            month = daily_checkin.check_in(ADA)
        assert (month.streak, month.exact) == (None, False)
        self.accepted.add(month.today)

    def go_on(self) -> None:
        self.clock.advance(hours=self.rng.choice([1, 11, 24, 24, 24, 24, 24, 50]))

    def move(self) -> None:
        profiles.change_profile(ADA, {"time_zone": self.rng.choice(ZONES)})
        self.queues.take("refreshes")
        if excused := cards.read_zone(ADA).excused:
            first, last = excused
            self.excused |= {first + timedelta(days=n) for n in range((last - first).days + 1)}

    def receive(self) -> list[CheckInEvent]:
        """Receive random messages; some of them stay on the queue."""
        bodies = self.queues.take(CHECKINS)
        self.rng.shuffle(bodies)
        cut = self.rng.randint(0, len(bodies))
        received, rest = bodies[:cut], bodies[cut:]
        repeated = [body for body in received if self.rng.random() < 0.3]
        self.queues.messages[CHECKINS] += rest + repeated
        return [CHECKINS.decode(str(body)) for body in received]

    def deliver(self) -> None:
        persist.persist_checkins(self.receive())

    def die(self) -> None:
        """Kill a consumer after its commit; its messages are delivered again."""
        events = self.receive()
        with self.monkeypatch.context() as patch:
            patch.setattr(redis_store, "acknowledge_all", lambda events: 0)
            persist.persist_checkins(events)
        self.queues.messages[CHECKINS] += [CHECKINS.encode(event) for event in events]

    def wait_for_mysql(self) -> None:
        """Run a consumer without MySQL; its messages are delivered again."""

        events = self.receive()
        if events:
            with self.monkeypatch.context() as patch, suppress(MysqlDown):
                patch.setattr(mysql_store, "insert", failing(MysqlDown("unavailable in this test")))
                persist.persist_checkins(events)
        self.queues.messages[CHECKINS] += [CHECKINS.encode(event) for event in events]

    def read(self) -> None:
        daily_checkin.read_month(ADA, self.rng.choice(self.months()))

    def read_slowly(self) -> None:
        """Run a consumer while a reader loads a month into Redis."""
        read = mysql_store.read

        def read_and_wait(*args: Any) -> Any:
            state = read(*args)
            self.deliver()
            return state

        redis.execute("DEL", KEYS.head)
        with self.monkeypatch.context() as patch:
            patch.setattr(mysql_store, "read", read_and_wait)
            with suppress(CheckInsKeepChanging):
                self.read()

    def check_when_delivered(self) -> None:
        """Deliver all messages and compare the months with the accepted days."""
        self.queues.drain()
        self.check_months()

    def sweep(self) -> None:
        for key in find_keys("*:checkins:outboxes"):
            for member in redis.execute("ZRANGE", key, 0, -1):
                redis.execute("ZADD", key, 0, member)
        sweep.sweep_checkins(resend_after_us=-(2**50))

    def lose_a_key(self) -> None:
        """Evict a random key that has a TTL."""
        keys = [KEYS.head, KEYS.lease, *(KEYS.month(first) for first in self.months())]
        redis.execute("DEL", self.rng.choice(keys))

    def lose_all(self) -> None:
        """Lose all of Redis: accepted days are on the queue or in MySQL as well."""
        redis.execute("FLUSHALL")

    def months(self) -> list[date]:
        return sorted({month_of(day) for day in [*self.accepted, self.today()]})

    def today(self) -> date:
        return cards.read_zone(ADA).day_at(self.clock.now_s)

    def saved(self) -> set[date]:
        return {day for (day,) in mysql.fetch_all("SELECT day FROM checkin WHERE user_id = 7")}

    def check_the_end(self) -> None:
        """Deliver and sweep everything; check that MySQL and Redis have the accepted days."""
        for _ in range(2):
            self.queues.drain()
            self.sweep()
        self.queues.drain()
        assert self.saved() >= self.accepted
        assert redis.execute("HGETALL", KEYS.outbox) == {}
        self.check_months()
        redis.execute("FLUSHALL")
        self.check_months()

    def check_months(self) -> None:
        assert self.saved() - self.accepted <= self.excused
        self.accepted |= self.saved()
        for first in self.months():
            month = daily_checkin.read_month(ADA, first)
            days = sorted(d.day for d in self.accepted if month_of(d) == first)
            assert list(month.days or []) == days
            assert month.streak == self.streak(month.today)

    def streak(self, today: date) -> int:
        day = today if today in self.accepted else today - timedelta(days=1)
        length = 0
        while day in self.accepted:
            day, length = day - timedelta(days=1), length + 1
        return length


@pytest.mark.parametrize("seed", SEEDS)
def test_days_and_streak_are_right_after_random_histories(
    plaza: World, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    clock = Clock("2026-11-20T00:30:00")
    clock.replace(monkeypatch)
    mysql.write("INSERT INTO user (id, nickname) VALUES (7, 'Ada')")
    history = History(seed, plaza, clock, monkeypatch)
    for _ in range(STEPS):
        history.step()
    assert len(history.saved() | history.accepted) > 0
    history.check_the_end()

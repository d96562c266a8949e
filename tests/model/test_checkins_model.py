"""Random histories of check-ins: whatever is late, lost or doubled, the streak is right after.

What is accepted is a set of days. Messages are delivered in any order, some twice; publishes fail;
consumers die before they tell Redis; Redis is away, loses single keys or everything; zones change.
"""

from __future__ import annotations

import random
from contextlib import suppress
from datetime import date, timedelta
from typing import Any

import pytest

from plaza.checkins import (
    CheckInEvent,
    daily_checkin,
    mysql_store,
    persist,
    redis_store,
    sweep,
)
from plaza.checkins.model import CheckInsKeepChanging, month_of
from plaza.checkins.queues import CHECKINS
from plaza.checkins.redis_store import CheckInKeys
from plaza.infra import mysql, redis
from plaza.infra.mysql import MysqlDown
from plaza.infra.redis import RedisDown
from plaza.users import cards, profiles
from tests.integration.checkins.test_checkins import Clock
from tests.support.keyspace import find_keys
from tests.support.plaza import World

ADA = 7
KEYS = CheckInKeys(ADA)
SEEDS = range(40)
STEPS = 60
ZONES = ["UTC", "Pacific/Kiritimati", "Etc/GMT+12", "Asia/Shanghai", "America/New_York"]


class History:
    """One random history, and the set of days that should come of it."""

    def __init__(
        self, seed: int, plaza: World, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.rng = random.Random(seed)
        self.queues, self.clock, self.monkeypatch = plaza.queues, clock, monkeypatch
        self.accepted: set[date] = set()

    def step(self) -> None:
        """Something happens."""
        acts = {
            self.come: 12, self.come_unheard: 3, self.come_without_redis: 4, self.go_on: 12,
            self.move: 1, self.deliver: 4, self.die: 2, self.look: 6, self.look_slowly: 4,
            self.wait_for_mysql: 2, self.sweep: 1, self.lose_a_key: 2, self.lose_all: 3,
            self.check_when_quiet: 5,
        }  # fmt: skip
        self.rng.choices(list(acts), list(acts.values()))[0]()

    def come(self) -> None:
        self.accepted.add(daily_checkin.check_in(ADA).today)

    def come_unheard(self) -> None:
        """The queue is away."""
        self.queues.away = True
        self.come()
        self.queues.away = False

    def come_without_redis(self) -> None:
        def away(*args: Any) -> Any:
            raise RedisDown("Redis is away (a test says so)")

        with self.monkeypatch.context() as patch:
            patch.setattr(redis_store, "check_in", away)
            month = daily_checkin.check_in(ADA)
        assert (month.streak, month.exact) == (None, False)
        self.accepted.add(month.today)

    def go_on(self) -> None:
        self.clock.advance(hours=self.rng.choice([1, 11, 24, 24, 24, 24, 24, 50]))

    def move(self) -> None:
        profiles.change_profile(ADA, {"time_zone": self.rng.choice(ZONES)})
        self.queues.take("refreshes")

    def take_some(self) -> list[CheckInEvent]:
        waiting = self.queues.take(CHECKINS)
        self.rng.shuffle(waiting)
        cut = self.rng.randint(0, len(waiting))
        some, rest = waiting[:cut], waiting[cut:]
        again = [body for body in some if self.rng.random() < 0.3]
        self.queues.messages[CHECKINS] += rest + again
        return [CheckInEvent.from_json(body) for body in some]

    def deliver(self) -> None:
        persist.persist_checkins(self.take_some())

    def die(self) -> None:
        """A consumer commits and dies; its messages come again."""
        facts = self.take_some()
        with self.monkeypatch.context() as patch:
            patch.setattr(redis_store, "acknowledge_all", lambda facts: 0)
            persist.persist_checkins(facts)
        self.queues.messages[CHECKINS] += [fact.to_json() for fact in facts]

    def wait_for_mysql(self) -> None:
        """MySQL is away for a consumer, whose messages come again."""

        def away(facts: Any) -> Any:
            raise MysqlDown("MySQL is away (a test says so)")

        facts = self.take_some()
        if facts:
            with self.monkeypatch.context() as patch, suppress(MysqlDown):
                patch.setattr(mysql_store, "insert", away)
                persist.persist_checkins(facts)
        self.queues.messages[CHECKINS] += [fact.to_json() for fact in facts]

    def look(self) -> None:
        daily_checkin.read_month(ADA, self.rng.choice(self.months()))

    def look_slowly(self) -> None:
        """A consumer saves and settles while a reader is bringing a month back."""
        read = mysql_store.read

        def read_and_wait(*args: Any) -> Any:
            found = read(*args)
            self.deliver()
            return found

        redis.execute("DEL", KEYS.head)
        with self.monkeypatch.context() as patch:
            patch.setattr(mysql_store, "read", read_and_wait)
            with suppress(CheckInsKeepChanging):
                self.look()

    def check_when_quiet(self) -> None:
        """The queue is empty: what is shown is what was accepted, saved or not."""
        self.queues.drain()
        self.check_what_is_shown()

    def sweep(self) -> None:
        for key in find_keys("*:checkins:outboxes"):
            for member in redis.execute("ZRANGE", key, 0, -1):
                redis.execute("ZADD", key, 0, member)
        sweep.sweep_checkins(grace_us=-(2**50))

    def lose_a_key(self) -> None:
        """Evicted: what has a time to live may go at any moment."""
        keys = [KEYS.head, KEYS.lease, *(KEYS.month(first) for first in self.months())]
        redis.execute("DEL", self.rng.choice(keys))

    def lose_all(self) -> None:
        """Nothing is lost: what was answered is on the queue or in MySQL as well."""
        redis.execute("FLUSHALL")

    def months(self) -> list[date]:
        return sorted({month_of(day) for day in [*self.accepted, self.today()]})

    def today(self) -> date:
        return cards.read_zone(ADA).day_at(self.clock.now_s)

    def saved(self) -> set[date]:
        return {day for (day,) in mysql.fetch_all("SELECT day FROM checkin WHERE user_id = 7")}

    def check_the_end(self) -> None:
        """All is delivered and swept: MySQL and Redis have what was accepted."""
        for _ in range(2):
            self.queues.drain()
            self.sweep()
        self.queues.drain()
        assert self.saved() == self.accepted
        assert redis.execute("HGETALL", KEYS.outbox) == {}
        self.check_what_is_shown()
        redis.execute("FLUSHALL")
        self.check_what_is_shown()

    def check_what_is_shown(self) -> None:
        for first in self.months():
            seen = daily_checkin.read_month(ADA, first)
            own = sorted(d.day for d in self.accepted if month_of(d) == first)
            assert list(seen.days or []) == own
            assert seen.streak == self.streak(seen.today)

    def streak(self, today: date) -> int:
        day = today if today in self.accepted else today - timedelta(days=1)
        length = 0
        while day in self.accepted:
            day, length = day - timedelta(days=1), length + 1
        return length


@pytest.mark.parametrize("seed", SEEDS)
def test_after_any_history_days_and_streak_are_what_was_accepted(
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

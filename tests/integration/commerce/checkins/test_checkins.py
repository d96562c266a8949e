"""Check-ins on real servers: one a day in the user's time zone, exact streaks, nothing lost."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from bench.round_trips import count_round_trips
from plaza.commerce.checkins import (
    CheckInEvent,
    daily_checkin,
    mysql_store,
    persist,
    redis_store,
    sweep,
)
from plaza.commerce.checkins.gauges import read_checkin_outboxes
from plaza.commerce.checkins.model import Month
from plaza.commerce.checkins.queues import CHECKINS
from plaza.commerce.checkins.redis_store import CHECK_IN, CheckInKeys
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.queues import sqs
from plaza.infra.queues.queue import QueueDown
from plaza.infra.redis import connections, masters, redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime.errors import Unavailable
from plaza.people.users import profiles
from plaza.people.users import redis_store as user_store
from tests.integration.conftest import Away
from tests.support.consumers import statements
from tests.support.failures import failing
from tests.support.functions import ask, event, handler
from tests.support.keyspace import find_keys, own_client, redis_us
from tests.support.plaza import World, decode

ADA = 7
KEYS = CheckInKeys(ADA)


class Clock:
    """A clock that tests set."""

    def __init__(self, text: str) -> None:
        self.set(text)

    def set(self, text: str) -> None:
        self.now_s = datetime.fromisoformat(f"{text}+00:00").timestamp()

    def advance(self, **time: float) -> None:
        self.now_s += timedelta(**time).total_seconds()

    def replace(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Replace the clock of check-ins and profiles. The sweep keeps the real clock, because it
        compares times with Redis."""
        fake = SimpleNamespace(now_us=lambda: int(self.now_s * 1e6), now_s=lambda: self.now_s)
        for module in (daily_checkin, profiles):
            monkeypatch.setattr(module, "clock", fake)


@pytest.fixture
def clock(plaza: World, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Set the clock to noon UTC of 21 November 2026, and add users 7 and 8."""
    clock = Clock("2026-11-21T12:00:00")
    clock.replace(monkeypatch)
    mysql.write("INSERT INTO user (id, nickname) VALUES (7, 'Ada'), (8, 'Bo')")
    return clock


def move_to(zone: str) -> None:
    profiles.change_profile(ADA, {"time_zone": zone})


def rows(user_id: int = ADA) -> list[str]:
    result = mysql.fetch_all("SELECT day FROM checkin WHERE user_id = %s ORDER BY day", (user_id,))
    return [str(day) for (day,) in result]


def insert(*days: str) -> None:
    """Store check-ins of Ada in MySQL."""
    values = ", ".join(f"(7, '{day}', 1)" for day in days)
    mysql.write(f"INSERT INTO checkin (user_id, day, version) VALUES {values}")


def insert_run(last: str, length: int) -> None:
    end = date.fromisoformat(last)
    insert(*[str(end - timedelta(days=i)) for i in range(length)])


def check_in() -> tuple[str, int | None]:
    """Check Ada in; return (the day, the streak)."""
    month = daily_checkin.check_in(ADA)
    return str(month.today), month.streak


def read_month(month: str = "2026-11") -> Month:
    return daily_checkin.read_month(ADA, date.fromisoformat(f"{month}-01"))


def outbox() -> dict[str, str]:
    entries: dict[str, str] = redis.execute("HGETALL", KEYS.outbox)
    return entries


# ---------------------------------------------------------------- checking in


def test_a_check_in_is_readable_at_once_and_stored_later(clock: Clock, plaza: World) -> None:
    month = daily_checkin.check_in(ADA)
    assert (month.days, month.streak, month.exact) == ([21], 1, True)
    assert rows() == []
    assert len(outbox()) == 1
    plaza.queues.drain()
    assert rows() == ["2026-11-21"]
    assert outbox() == {}
    assert read_month() == Month(date(2026, 11, 21), date(2026, 11, 1), [21], 1, exact=True)


def test_a_second_check_in_on_the_same_day_changes_nothing(clock: Clock, plaza: World) -> None:
    assert check_in() == check_in() == ("2026-11-21", 1)
    clock.advance(hours=11)
    assert check_in() == ("2026-11-21", 1)
    assert len(set(plaza.queues.messages[CHECKINS])) == 1, "one event until MySQL has stored it"
    plaza.queues.drain()
    assert check_in() == ("2026-11-21", 1)
    assert plaza.queues.messages[CHECKINS] == []
    assert rows() == ["2026-11-21"]


def test_of_many_concurrent_check_ins_one_counts(clock: Clock) -> None:
    read_month()  # hydrates the month
    keys = (KEYS.head, KEYS.month(date(2026, 11, 21)), KEYS.outbox, KEYS.outboxes)
    term = masters.find_node(KEYS.head).term
    args = (date(2026, 11, 21).toordinal(), 21, ADA, 1, 100, term)
    barrier, replies = threading.Barrier(16, timeout=60), []

    def check_in_repeatedly() -> None:
        with own_client() as own:
            barrier.wait()
            replies.extend([own.eval(CHECK_IN.source, 4, *keys, *args)[0] for _ in range(10)])

    threads = [threading.Thread(target=check_in_repeatedly) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (replies.count("CHANGED"), replies.count("UNCHANGED")) == (1, 159)


@pytest.mark.parametrize(
    ("last", "month", "days"),
    [
        ("2026-11-20", "2026-11", list(range(1, 22))),
        ("2026-11-30", "2026-12", [1]),
        ("2026-12-31", "2027-01", [1]),
        ("2027-02-28", "2027-03", [1]),
        ("2028-02-28", "2028-02", list(range(1, 30))),  # of a leap year
    ],
)
@pytest.mark.parametrize("hydrated", [True, False], ids=["hydrated", "not hydrated"])
def test_a_streak_continues_across_months_and_years(
    clock: Clock, last: str, month: str, days: list[int], hydrated: bool
) -> None:
    insert_run(last, 400)
    if hydrated:
        read_month(last[:7])
    clock.set(f"{date.fromisoformat(last) + timedelta(days=1)}T12:00:00")
    assert check_in()[1] == 401
    result = read_month(month)
    assert (result.days, result.streak) == (days, 401)


def test_a_streak_grows_daily_and_a_missed_day_ends_it(clock: Clock) -> None:
    clock.set("2026-12-29T12:00:00")
    for streak in range(1, 71):
        assert check_in()[1] == streak
        clock.advance(days=1)
    assert read_month("2027-03").streak == 70, "today is not over"
    clock.advance(days=1)
    assert read_month("2027-03").streak == 0
    assert check_in()[1] == 1
    assert read_month("2027-01").days == list(range(1, 32))
    assert read_month("2027-02").days == list(range(1, 29))


def test_a_month_is_read_for_its_user_only(clock: Clock) -> None:
    insert("2026-10-01", "2026-10-31", "2026-11-01", "2026-11-30")
    for _ in ("from MySQL", "from Redis"):
        assert read_month("2026-10").days == [1, 31]
        assert read_month("2026-11").days == [1, 30]
        assert read_month("2026-09").days == []
    assert daily_checkin.read_month(8, date(2026, 11, 1)).days == []


@pytest.mark.parametrize("month", ["1000-01", "2024-12", "2027-01", "9999-12"])
def test_reading_a_month_without_possible_days_creates_no_keys(clock: Clock, month: str) -> None:
    insert_run("2026-11-21", 5)
    result = read_month(month)
    assert (result.days, result.streak) == ([], 5)
    months = {k.rpartition(":")[2] for k in find_keys(f"{KEYS.head}:*")}
    assert months <= {"2026-11", "lease"}


# ---------------------------------------------------------------- time zones


def test_the_day_is_the_date_in_the_time_zone_of_the_profile(clock: Clock) -> None:
    clock.set("2026-11-20T16:30:00")
    move_to("Asia/Shanghai")
    assert check_in() == ("2026-11-21", 1)
    assert str(daily_checkin.check_in(8).today) == "2026-11-20"


def test_users_read_and_change_only_their_own_time_zone(clock: Clock) -> None:
    assert ask("users.get_my_profile", "api/users")[1]["time_zone"] == "UTC"
    request = event("users.update_my_profile") | {"body": '{"time_zone": "Europe/Berlin"}'}
    assert '"time_zone":"Europe/Berlin"' in handler("api/users")(request, None)["body"]
    for _ in ("from Redis", "from MySQL"):
        assert ask("users.get_my_profile", "api/users")[1]["time_zone"] == "Europe/Berlin"
        redis.execute("FLUSHALL")
    assert "time_zone" not in ask("users.get_user_without_session", "api/users")[1]
    for bad in ("Mars/Base", "", "../UTC"):
        request = event("users.update_my_profile") | {"body": f'{{"time_zone": "{bad}"}}'}
        assert handler("api/users")(request, None)["statusCode"] == 400


def test_across_daylight_saving_changes_each_day_counts_once(clock: Clock) -> None:
    clock.set("2026-01-01T12:00:00")
    move_to("Europe/Berlin")
    for change in ("2026-03-29", "2026-10-25"):
        begin = date.fromisoformat(change) - timedelta(days=2)
        clock.set(f"{begin}T12:00:00")
        days = set()
        for _ in range(5 * 24):  # every hour of five days
            days.add(check_in()[0])
            clock.advance(hours=1)
        expected = {str(begin + timedelta(days=i)) for i in range(5)}
        assert expected <= days <= expected | {str(begin + timedelta(days=5))}
        assert check_in()[1] == len(days)


def test_a_move_to_the_west_restores_no_missed_day(clock: Clock) -> None:
    """Given a streak that ended at midnight in Berlin, while Honolulu has the day before."""
    move_to("Europe/Berlin")
    insert_run("2026-11-19", 10)
    clock.set("2026-11-21T05:00:00")
    move_to("Pacific/Honolulu")
    assert check_in() == ("2026-11-21", 1)
    assert read_month().days == [*range(10, 20), 21]


def test_a_move_to_the_east_gains_no_day_that_has_not_begun_anywhere(clock: Clock) -> None:
    clock.set("2026-11-21T11:00:00")
    days = []
    for zone in ("Etc/GMT+12", "UTC", "Pacific/Kiritimati", "Etc/GMT+12", "Pacific/Kiritimati"):
        move_to(zone)
        days.append(check_in()[0])
    # The zones have the 20th, 21st and 22nd now; the 20th was over in UTC, the first zone.
    assert days == ["2026-11-21", "2026-11-21", "2026-11-22", "2026-11-22", "2026-11-22"]
    assert check_in()[1] == 2


def test_hourly_moves_gain_no_more_days_than_have_begun_anywhere(clock: Clock) -> None:
    """Given a user that changes the time zone every hour for 20 days."""
    clock.set("2026-11-01T00:30:00")
    zones = ["Pacific/Kiritimati", "Etc/GMT+12", "UTC", "Asia/Shanghai", "Pacific/Honolulu"]
    for hour in range(24 * 20):
        move_to(zones[hour % len(zones)])
        check_in()
        clock.advance(hours=1)
    days = read_month("2026-11").days
    assert days == list(range(1, 22)), "the 21st has begun in Kiritimati"
    assert read_month("2026-11").streak == 21


def test_a_move_to_the_west_keeps_the_streak(clock: Clock) -> None:
    move_to("Asia/Tokyo")
    insert_run("2026-11-20", 5)
    clock.set("2026-11-21T01:00:00")
    assert check_in() == ("2026-11-21", 6)
    move_to("America/Los_Angeles")  # where it is the 20th
    assert check_in() == ("2026-11-21", 6)
    assert read_month().streak == 6
    clock.set("2026-11-22T07:59:00")
    assert check_in() == ("2026-11-21", 6)
    clock.set("2026-11-22T08:00:00")
    assert check_in() == ("2026-11-22", 7)


@pytest.mark.parametrize(
    ("west", "east", "left", "arrived", "day"),
    [
        ("Pacific/Pago_Pago", "Pacific/Kiritimati", "21T10:20", "21T10:35", "2026-11-22"),
        ("America/Los_Angeles", "Asia/Tokyo", "21T07:30", "21T18:30", "2026-11-22"),
    ],
)
@pytest.mark.parametrize("hours_later", [0, 20])
def test_a_flight_over_the_date_line_keeps_the_streak(
    clock: Clock,
    plaza: World,
    west: str,
    east: str,
    left: str,
    arrived: str,
    day: str,
    hours_later: int,
) -> None:
    """Given a check-in in the evening; the day after it is skipped, or cut short by the flight."""
    clock.set("2026-11-19T12:00:00")
    move_to(west)
    insert_run("2026-11-19", 2)
    clock.set(f"2026-11-{left}:00")
    assert check_in() == ("2026-11-20", 3)
    clock.set(f"2026-11-{arrived}:00")
    move_to(east)
    clock.advance(hours=hours_later)
    assert read_month().streak == 3, "before the check-in"
    assert check_in() == (day, 5)
    assert check_in() == (day, 5)
    plaza.queues.drain()
    assert rows()[-3:] == ["2026-11-20", "2026-11-21", "2026-11-22"]
    assert [bodies for bodies in plaza.queues.messages.values() if bodies] == []
    redis.execute("FLUSHALL")
    assert read_month().streak == 5, "as MySQL has it"


def test_a_move_to_the_east_restores_no_day_that_was_missed_before(clock: Clock) -> None:
    clock.set("2026-11-18T12:00:00")
    move_to("Pacific/Pago_Pago")
    insert_run("2026-11-18", 3)
    clock.set("2026-11-21T10:35:00")  # the 20th, and the 19th was missed
    move_to("Pacific/Kiritimati")
    assert read_month().streak == 0
    assert check_in() == ("2026-11-22", 1)


def test_only_the_first_day_after_a_move_to_the_east_keeps_the_streak(clock: Clock) -> None:
    clock.set("2026-11-20T12:00:00")
    move_to("America/Los_Angeles")
    insert_run("2026-11-20", 3)
    clock.set("2026-11-21T18:30:00")
    move_to("Asia/Tokyo")
    clock.advance(days=1)
    assert check_in() == ("2026-11-23", 1)


def test_an_unknown_time_zone_can_be_replaced_by_its_user(clock: Clock) -> None:
    """Given a name that only the time zone database of the version after has, and a rollback."""
    mysql.write("UPDATE user SET time_zone = 'US/Pacific-New', latest_day = '2026-11-20'")
    insert_run("2026-11-20", 3)
    for _ in ("from MySQL", "from Redis"):
        assert ask("users.get_my_profile", "api/users")[0] == 200
        assert ask("checkins.get_check_ins", "api/checkins")[0] == 200
    assert check_in() == ("2026-11-21", 4)
    request = event("users.update_my_profile") | {"body": '{"time_zone": "Europe/Berlin"}'}
    assert handler("api/users")(request, None)["statusCode"] == 200
    assert check_in() == ("2026-11-21", 4)


def test_a_stale_time_zone_in_redis_takes_no_day_back(clock: Clock) -> None:
    clock.set("2026-11-30T23:00:00")
    insert_run("2026-11-30", 3)
    assert check_in() == ("2026-11-30", 3)
    move_to("Asia/Tokyo")
    assert check_in() == ("2026-12-01", 4)
    redis.execute("HSET", user_store.zone_key(ADA), "value", "UTC ")
    month = daily_checkin.check_in(ADA)
    assert (str(month.today), month.days, month.streak) == ("2026-12-01", [1], 4)
    assert str(read_month().today) == "2026-12-01"


# ---------------------------------------------------------------- nothing accepted is lost


def test_a_check_in_that_sqs_refused_survives_the_loss_of_redis(
    clock: Clock, plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a queue that is down, the day is stored in MySQL before the call returns."""
    insert_run("2026-11-20", 3)
    plaza.queues.away = True
    assert check_in() == ("2026-11-21", 4)
    assert "checkin_saved_directly" in capsys.readouterr().out
    assert (rows()[-1], outbox()) == ("2026-11-21", {})
    redis.execute("FLUSHALL")
    assert (read_month().days, read_month().streak) == ([18, 19, 20, 21], 4)


fail_insert = failing(MysqlDown("MySQL is down, simulated by a test"))


def test_a_check_in_fails_until_it_has_a_second_copy(
    clock: Clock, plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_month()
    plaza.queues.away = True
    with monkeypatch.context() as patch:
        patch.setattr(mysql_store, "insert", fail_insert)
        for _ in range(2):
            with pytest.raises(MysqlDown):
                check_in()
    plaza.queues.away = False
    assert check_in() == ("2026-11-21", 1)
    redis.execute("FLUSHALL")
    plaza.queues.drain()
    assert rows() == ["2026-11-21"]


def test_a_check_in_that_was_not_sent_is_sent_by_its_repeat(clock: Clock, plaza: World) -> None:
    """Given a day that is set in Redis, but was not sent."""
    read_month()
    redis_store.check_in(ADA, date(2026, 11, 21), 1_795_262_400_000_000)
    assert plaza.queues.messages[CHECKINS] == []
    assert check_in() == ("2026-11-21", 1)
    [body] = plaza.queues.messages[CHECKINS]
    assert CHECKINS.decode(str(body)).version_us == 1_795_262_400_000_000, (
        "the time of the first check-in"
    )


def test_dead_lettered_days_count_in_the_streak(
    clock: Clock, plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given days that Redis lost and MySQL could not store, whose messages are dead letters."""
    for _ in range(4):
        check_in()
        clock.advance(days=1)
    events = [CHECKINS.decode(str(body)) for body in plaza.queues.take(CHECKINS)]
    redis.execute("FLUSHALL")
    assert check_in() == ("2026-11-25", 1), "the earlier days are stored nowhere yet"
    with monkeypatch.context() as patch:
        patch.setattr(mysql_store, "insert", fail_insert)
        with pytest.raises(MysqlDown):
            persist.persist_checkins(events)
    assert check_in() == ("2026-11-25", 5)
    assert (read_month().days, read_month().exact) == ([21, 22, 23, 24, 25], True)
    plaza.let_sweeps_be_due()
    assert sweep.sweep_checkins(resend_after_us=-(2**50)) == 5
    plaza.queues.drain()
    assert len(rows()) == 5
    assert outbox() == {}


def test_adding_stored_days_to_the_outbox_changes_nothing(
    clock: Clock, plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_in()
    events = [CHECKINS.decode(str(body)) for body in plaza.queues.messages[CHECKINS]]
    plaza.queues.drain()
    before = read_month()
    with monkeypatch.context() as patch:
        patch.setattr(mysql_store, "insert", fail_insert)
        for _ in range(2):
            with pytest.raises(MysqlDown):
                persist.persist_checkins(events)
    assert read_month() == before
    persist.persist_checkins(events)
    assert (read_month(), outbox(), rows()) == (before, {}, ["2026-11-21"])


def test_a_day_that_was_never_sent_is_swept(clock: Clock, plaza: World) -> None:
    now_us = redis_us()  # the day must match the real clock
    clock.now_s = now_us / 1e6
    day = datetime.fromtimestamp(clock.now_s, UTC).date()
    read_month(f"{day:%Y-%m}")
    redis_store.check_in(ADA, day, now_us)
    assert rows() == []
    age_outbox()
    assert sweep.sweep_checkins() == 1
    plaza.queues.drain()
    assert (rows(), outbox()) == ([day.isoformat()], {})
    assert sweep.sweep_checkins(resend_after_us=0) == 0
    assert not redis.execute("EXISTS", KEYS.outboxes)


def age_outbox(us: int = 60_000_000) -> None:
    """Move the acceptance of all entries of the outbox, and its sweeps, ``us`` into the past."""
    for day, accepted_us in connections.client().hgetall(KEYS.outbox).items():
        redis.execute("HSET", KEYS.outbox, day, int(accepted_us) - us)
    redis.execute("ZINCRBY", KEYS.outboxes, -us, ADA)
    if swept_us := redis.execute("GET", KEYS.sweep):
        redis.execute("SET", KEYS.sweep, int(swept_us) - us)


def test_a_day_is_due_after_resend_after_and_whenever_its_age_has_doubled(
    clock: Clock, plaza: World
) -> None:
    read_month()
    redis_store.check_in(ADA, date(2026, 11, 21), redis_us())
    assert sweep.sweep_checkins() == 0, "within resend_after"
    sent = []
    for minute in range(1, 70):
        age_outbox()
        if sweep.sweep_checkins():
            sent.append(minute)
    assert sent == [1, 2, 4, 8, 16, 32, 60]


def test_a_new_day_is_due_after_resend_after_although_the_others_wait_for_long(
    clock: Clock, plaza: World
) -> None:
    read_month()
    redis_store.check_in(ADA, date(2026, 11, 21), redis_us())
    for _ in range(40):
        age_outbox()
        sweep.sweep_checkins()
    plaza.queues.take(CHECKINS)
    redis_store.check_in(ADA, date(2026, 11, 22), redis_us())
    assert sweep.sweep_checkins() == 0
    age_outbox()
    assert sweep.sweep_checkins() == 1
    [body] = plaza.queues.take(CHECKINS)
    assert json.loads(body)["day"] == "2026-11-22"
    assert read_checkin_outboxes()["checkin_outbox_age_s"] == pytest.approx(41 * 60, abs=5)


def test_a_day_that_was_accepted_ahead_of_the_clock_is_swept(clock: Clock, plaza: World) -> None:
    read_month()
    redis_store.check_in(ADA, date(2026, 11, 21), redis_us() + 3_600_000_000)
    assert sweep.sweep_checkins() == 1
    first_us = redis.execute("ZSCORE", KEYS.outboxes, ADA)
    assert first_us <= redis_us()
    redis.execute("SET", KEYS.sweep, redis_us() + 3_600_000_000)
    assert sweep.sweep_checkins(resend_after_us=1) == 1
    assert redis.execute("ZSCORE", KEYS.outboxes, ADA) == first_us, "accepted before that sweep"


def test_a_day_is_due_although_the_last_sweep_is_ahead_of_the_clock(
    clock: Clock, plaza: World
) -> None:
    read_month()
    redis_store.check_in(ADA, date(2026, 11, 21), redis_us())
    age_outbox()
    redis.execute("SET", KEYS.sweep, redis_us() + 3_600_000_000)
    assert sweep.sweep_checkins() == 1
    assert sweep.sweep_checkins() == 0


def test_an_empty_outbox_has_no_progress(clock: Clock, plaza: World) -> None:
    read_month()
    redis_store.check_in(ADA, date(2026, 11, 21), redis_us())
    sweep.sweep_checkins(resend_after_us=0)
    redis.execute("DEL", KEYS.outbox)
    redis.execute("ZADD", KEYS.outboxes, 1, ADA)
    sweep.sweep_checkins(resend_after_us=0)
    assert redis.execute("EXISTS", KEYS.sweep, KEYS.outboxes) == 0


def test_days_that_the_queue_did_not_accept_stay_due(
    clock: Clock, plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_month()
    redis_store.check_in(ADA, date(2026, 11, 21), redis_us())
    age_outbox()
    with monkeypatch.context() as patch:
        patch.setattr(sqs, "send_all", lambda queue, messages, deadline: 0)
        assert sweep.sweep_checkins() == 0
    assert sweep.sweep_checkins() == 1
    assert sweep.sweep_checkins() == 0


def test_erasing_a_user_deletes_the_progress_of_sweeps(clock: Clock, plaza: World) -> None:
    read_month()
    redis_store.check_in(ADA, date(2026, 11, 21), redis_us())
    sweep.sweep_checkins(resend_after_us=0)
    assert redis.execute("EXISTS", KEYS.sweep) == 1
    redis_store.forget(ADA, [date(2026, 11, 21)])
    assert redis.execute("EXISTS", KEYS.sweep, KEYS.outboxes) == 0


def test_the_sweep_sends_nothing_while_the_backlog_is_long(clock: Clock, plaza: World) -> None:
    check_in()
    age_outbox()
    plaza.queues.messages[CHECKINS] = ["{}"] * 10_001
    assert sweep.sweep_checkins() == 0


def test_a_batch_in_any_order_and_with_duplicates_is_stored_once(
    clock: Clock, plaza: World
) -> None:
    for _ in range(3):
        check_in()
        clock.advance(days=1)
    bodies = plaza.queues.take(CHECKINS)
    events = [CHECKINS.decode(str(body)) for body in reversed(bodies * 3)]
    persist.persist_checkins(events[:5])
    persist.persist_checkins(events)
    assert rows() == ["2026-11-21", "2026-11-22", "2026-11-23"]
    assert (read_month().days, read_month().streak, outbox()) == ([21, 22, 23], 3, {})


def test_a_batch_of_a_thousand_costs_as_many_statements_as_one_event(clock: Clock) -> None:
    def cost(number: int) -> int:
        events = [CheckInEvent(user, date(2026, 11, 21), 1) for user in range(100, 100 + number)]
        before = statements()
        persist.persist_checkins(events)
        return statements() - before

    assert cost(1) == cost(1000)


def test_a_batch_that_was_stored_but_not_acknowledged_is_retried(
    clock: Clock, plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_in()
    with monkeypatch.context() as patch:
        patch.setattr(redis_store, "acknowledge_all", lambda events: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            persist.persist_checkins(
                [CHECKINS.decode(str(b)) for b in plaza.queues.messages[CHECKINS]]
            )
    assert (rows(), len(outbox())) == (["2026-11-21"], 1)
    plaza.queues.drain()
    assert (rows(), outbox()) == (["2026-11-21"], {})


# ---------------------------------------------------------------- Redis lost its data


def test_streak_and_days_survive_the_loss_of_redis(clock: Clock, plaza: World) -> None:
    clock.set("2026-10-20T12:00:00")
    for _ in range(40):
        check_in()
        clock.advance(days=1)
    plaza.queues.drain()
    before = read_month("2026-10"), read_month("2026-11")
    redis.execute("FLUSHALL")
    assert (read_month("2026-10"), read_month("2026-11")) == before
    redis.execute("FLUSHALL")
    assert check_in() == ("2026-11-29", 41)


def test_a_queued_day_is_stored_once_after_the_loss_of_redis(clock: Clock, plaza: World) -> None:
    insert_run("2026-11-20", 3)
    check_in()
    redis.execute("FLUSHALL")
    assert read_month().streak == 3, "today is only on the queue"
    assert check_in() == ("2026-11-21", 4), "a repeat after the loss"
    assert len(plaza.queues.messages[CHECKINS]) == 2
    plaza.queues.drain()
    assert rows()[-2:] == ["2026-11-20", "2026-11-21"]
    assert (read_month().days, read_month().streak) == ([18, 19, 20, 21], 4)


def test_a_late_day_joins_the_streak(clock: Clock, plaza: World) -> None:
    insert_run("2026-11-19", 3)
    read_month()
    clock.set("2026-11-20T12:00:00")
    check_in()
    late = plaza.queues.take(CHECKINS)
    redis.execute("FLUSHALL")
    clock.advance(days=1)
    assert check_in() == ("2026-11-21", 1), "the earlier days are stored nowhere yet"
    plaza.queues.messages[CHECKINS] += late
    plaza.queues.drain()
    assert (read_month().days, read_month().streak) == ([17, 18, 19, 20, 21], 5)


def test_a_late_day_of_another_month_joins_the_streak(clock: Clock, plaza: World) -> None:
    clock.set("2026-11-30T12:00:00")
    insert_run("2026-11-29", 3)
    check_in()
    late = plaza.queues.take(CHECKINS)
    redis.execute("FLUSHALL")
    clock.advance(days=1)
    assert (check_in(), read_month("2026-11").days) == (("2026-12-01", 1), [27, 28, 29])
    persist.persist_checkins([CHECKINS.decode(str(body)) for body in late])
    assert read_month("2026-12").streak == 5, "the outbox counts"
    assert read_month("2026-11").days == [27, 28, 29, 30]


def test_the_outbox_survives_the_eviction_of_the_other_keys(clock: Clock, plaza: World) -> None:
    insert_run("2026-11-20", 3)
    check_in()
    redis.execute("DEL", KEYS.head, KEYS.month(date(2026, 11, 1)))  # evicted
    assert (read_month().days, read_month().streak) == ([18, 19, 20, 21], 4)
    clock.advance(days=1)
    assert check_in() == ("2026-11-22", 5)


def test_a_day_that_is_stored_during_hydration_is_not_missed(
    clock: Clock, plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a day that is stored and acknowledged between a reader's SELECT and its hydration."""
    insert_run("2026-11-19", 2)
    late = CheckInEvent(ADA, date(2026, 11, 20), int(clock.now_s * 1e6))
    read = mysql_store.read
    reads: list[object] = []

    def read_during_write(*args: Any) -> Any:
        result = read(*args)
        if not reads:
            persist.persist_checkins([late])
        reads.append(1)
        return result

    monkeypatch.setattr(mysql_store, "read", read_during_write)
    assert (read_month().days, read_month().streak) == ([18, 19, 20], 3)
    assert len(reads) == 2


def test_two_concurrent_readers_both_hydrate(clock: Clock) -> None:
    insert_run("2026-11-21", 2)
    first, second = redis_store.acquire_lease(ADA), redis_store.acquire_lease(ADA)
    stored = mysql_store.read(ADA, date(2026, 11, 1))
    for lease in (first, second):
        assert redis_store.hydrate(ADA, lease, date(2026, 11, 1), stored)


def test_what_the_version_before_hydrated_is_hydrated_once(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert_run("2026-11-21", 2)
    before = read_month()
    redis.execute("HDEL", KEYS.head, "term", "2026-11")
    reads, read = [], mysql_store.read

    def count(user_id: int, first: date) -> Any:
        reads.append(first)
        return read(user_id, first)

    monkeypatch.setattr(mysql_store, "read", count)
    assert [read_month() for _ in range(2)] == [before] * 2
    assert len(reads) == 1


# ---------------------------------------------------------------- servers are unavailable


def test_without_redis_a_check_in_is_provisional(
    clock: Clock, plaza: World, redis_away: Away
) -> None:
    move_to("Asia/Tokyo")
    insert_run("2026-11-20", 3)
    with redis_away():
        status, body = ask("checkins.create_check_in", "api/checkins")
        fields = [body[name] for name in ("today", "streak", "days", "exact")]
        assert (status, fields) == (202, ["2026-11-21", None, None, False])
        month = read_month()
        assert (month.days, month.streak, month.exact) == ([18, 19, 20], 3, False)
    plaza.queues.drain()
    assert (read_month().days, read_month().streak) == ([18, 19, 20, 21], 4)


def test_a_provisional_check_in_updates_a_redis_that_kept_its_data(
    clock: Clock, plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert_run("2026-11-20", 3)
    read_month()
    with monkeypatch.context() as patch:
        fail = failing(RedisDown("Redis is down, simulated by a test"))

        patch.setattr(redis_store, "check_in", fail)
        assert daily_checkin.check_in(ADA).streak is None
    assert read_month().streak == 3
    plaza.queues.drain()
    assert (read_month().days, read_month().streak) == ([18, 19, 20, 21], 4)


def test_without_redis_and_the_queue_a_check_in_fails(
    clock: Clock, plaza: World, redis_away: Away
) -> None:
    plaza.queues.away = True
    with redis_away(), pytest.raises(QueueDown):
        daily_checkin.check_in(ADA)


def test_a_batch_that_can_not_be_acknowledged_is_retried(
    clock: Clock, plaza: World, redis_away: Away
) -> None:
    with redis_away():
        daily_checkin.check_in(ADA)
        with pytest.raises(Unavailable):
            plaza.queues.drain()


def test_stored_check_ins_resume_with_the_acknowledgement(
    clock: Clock, plaza: World, redis_away: Away, mysql_away: Away
) -> None:
    """Given Redis down after the batch was stored, and then MySQL."""
    check_in()
    events = [decode(CHECKINS, body) for body in plaza.queues.take(CHECKINS)]
    with redis_away():
        with pytest.raises(RedisDown) as interrupted:
            persist.persist_checkins(events)
        assert interrupted.value.step == "acknowledge"
        assert rows() == ["2026-11-21"]
    read_month()
    with mysql_away():
        persist.acknowledge(events)
    assert check_in() == ("2026-11-21", 1)


def test_without_mysql_a_hydrated_user_checks_in(
    clock: Clock, plaza: World, mysql_away: Away
) -> None:
    insert_run("2026-11-20", 3)
    read_month()
    with mysql_away():
        assert check_in() == ("2026-11-21", 4)
        assert read_month().days == [18, 19, 20, 21]
        with pytest.raises(MysqlDown):
            daily_checkin.check_in(8)
    plaza.queues.drain()
    assert rows()[-1] == "2026-11-21"


# ---------------------------------------------------------------- costs


def test_a_hydrated_check_in_costs_two_round_trips_and_no_statement(
    clock: Clock, plaza: World
) -> None:
    check_in()
    clock.advance(days=1)
    calls: list[Callable[[], object]] = [check_in, check_in, read_month]
    for call in calls:
        before = statements()
        with count_round_trips() as counter:
            call()
        assert (counter.sent, statements() - before) == (2, 1)


def test_the_keys_of_a_user_are_small_and_expire(clock: Clock, plaza: World) -> None:
    insert_run("2026-11-20", 400)
    check_in()
    plaza.queues.drain()
    keys = find_keys(f"{KEYS.head}*")
    assert sum(redis.execute("MEMORY", "USAGE", key) for key in keys) < 400
    for key in keys:
        assert 0 < redis.execute("TTL", key) <= 44 * 86_400


# ---------------------------------------------------------------- the routes


def test_the_routes_return_the_documented_bodies(clock: Clock) -> None:
    month = {"today": "2026-11-21", "month": "2026-11", "days": [21], "total": 1, "streak": 1}
    assert ask("checkins.create_check_in", "api/checkins") == (200, month | {"exact": True})
    assert ask("checkins.create_check_in", "api/checkins") == (200, month | {"exact": True})
    assert ask("checkins.get_check_ins", "api/checkins") == (200, month | {"exact": True})


def ask_without_month() -> dict[str, Any]:
    request = event("checkins.get_check_ins")
    del request["queryStringParameters"]
    response = handler("api/checkins")(request | {"rawQueryString": ""}, None)
    assert response["statusCode"] == 200, response["body"]
    document: dict[str, Any] = json.loads(response["body"])
    return document


def test_the_month_is_the_current_one_by_default(clock: Clock) -> None:
    insert("2026-10-31", "2026-11-01", "2026-11-20")
    result = ask_without_month()
    assert (result["month"], result["days"], result["today"]) == ("2026-11", [1, 20], "2026-11-21")


def test_the_present_month_is_that_of_the_time_zone(clock: Clock) -> None:
    clock.set("2026-11-30T23:00:00")
    insert("2026-11-30")
    assert ask_without_month()["month"] == "2026-11"
    move_to("Asia/Tokyo")
    assert (ask_without_month()["month"], ask_without_month()["days"]) == ("2026-12", [])
    check_in()
    result = ask_without_month()
    assert (result["month"], result["days"], result["today"]) == ("2026-12", [1], "2026-12-01")
    redis.execute("HSET", user_store.zone_key(ADA), "value", "UTC ")
    result = ask_without_month()
    assert (result["month"], result["days"]) == ("2026-12", [1]), (
        "a stale zone, and a check-in since"
    )


@pytest.mark.parametrize("month", ["", "2026", "2026-13", "2026-1", "0000-01", "2026-11-21", "x"])
def test_an_invalid_month_is_400(clock: Clock, month: str) -> None:
    request = event("checkins.get_check_ins")
    request |= {"rawQueryString": f"month={month}", "queryStringParameters": {"month": month}}
    assert handler("api/checkins")(request, None)["statusCode"] == 400


@pytest.mark.parametrize("name", ["create_check_in", "get_check_ins"])
def test_the_routes_need_a_session(clock: Clock, name: str) -> None:
    request = event(f"checkins.{name}")
    del request["headers"]["authorization"]
    assert handler("api/checkins")(request, None)["statusCode"] == 401


def test_the_consumer_processes_its_sample_events(clock: Clock, plaza: World) -> None:
    save = handler("queue/save_checkins")
    assert save(event("save_checkins.batch"), None) == {"batchItemFailures": []}
    assert (rows(7), rows(8)) == (["2026-11-20"], ["2026-11-21"])

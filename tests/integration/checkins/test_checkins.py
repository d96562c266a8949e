"""Check-ins: once a day by one's own clock, a streak that is right, nothing accepted is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from bench.round_trips import count_round_trips
from plaza.checkins import (
    CheckInEvent,
    daily_checkin,
    mysql_store,
    persist,
    redis_store,
    sweep,
)
from plaza.checkins.model import Month
from plaza.checkins.queues import CHECKINS
from plaza.checkins.redis_store import CHECK_IN, CheckInKeys
from plaza.infra import mysql, redis
from plaza.infra.errors import Unavailable
from plaza.infra.mysql import MysqlDown
from plaza.infra.queues import QueueDown
from plaza.infra.redis import RedisDown
from plaza.users import profiles
from plaza.users import redis_store as user_store
from tests.integration.conftest import Away
from tests.support.consumers import statements
from tests.support.functions import ask, event, handler
from tests.support.keyspace import find_keys, own_client, redis_us
from tests.support.plaza import World

ADA = 7
KEYS = CheckInKeys(ADA)


class Clock:
    """What time it is for everybody here."""

    def __init__(self, text: str) -> None:
        self.set(text)

    def set(self, text: str) -> None:
        self.now_s = datetime.fromisoformat(f"{text}+00:00").timestamp()

    def go_on(self, **time: float) -> None:
        self.now_s += timedelta(**time).total_seconds()

    def replace(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Replace the clock of who checks in and who moves. The sweep keeps the real one: it
        compares its time with that of Redis."""
        fake = SimpleNamespace(now_us=lambda: int(self.now_s * 1e6), now_s=lambda: self.now_s)
        for module in (daily_checkin, profiles):
            monkeypatch.setattr(module, "clock", fake)


@pytest.fixture
def clock(plaza: World, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """It is noon, and Ada is there."""
    clock = Clock("2026-11-21T12:00:00")
    clock.replace(monkeypatch)
    mysql.write("INSERT INTO user (id, nickname) VALUES (7, 'Ada'), (8, 'Bo')")
    return clock


def move_to(zone: str) -> None:
    profiles.change_profile(ADA, {"time_zone": zone})


def rows(user_id: int = ADA) -> list[str]:
    found = mysql.fetch_all("SELECT day FROM checkin WHERE user_id = %s ORDER BY day", (user_id,))
    return [str(day) for (day,) in found]


def insert(*days: str) -> None:
    """As if they had checked in then, long ago."""
    values = ", ".join(f"(7, '{day}', 1)" for day in days)
    mysql.write(f"INSERT INTO checkin (user_id, day, version) VALUES {values}")


def insert_run(last: str, length: int) -> None:
    end = date.fromisoformat(last)
    insert(*[str(end - timedelta(days=i)) for i in range(length)])


def come() -> tuple[str, int | None]:
    """Check in; (the day it counted for, the streak)."""
    month = daily_checkin.check_in(ADA)
    return str(month.today), month.streak


def look(month: str = "2026-11") -> Month:
    return daily_checkin.read_month(ADA, date.fromisoformat(f"{month}-01"))


def outbox() -> dict[str, str]:
    found: dict[str, str] = redis.execute("HGETALL", KEYS.outbox)
    return found


# ---------------------------------------------------------------- checking in


def test_a_check_in_is_seen_at_once_and_saved_later(clock: Clock, plaza: World) -> None:
    month = daily_checkin.check_in(ADA)
    assert (month.days, month.streak, month.exact) == ([21], 1, True)
    assert rows() == []
    assert len(outbox()) == 1
    plaza.queues.drain()
    assert rows() == ["2026-11-21"]
    assert outbox() == {}
    assert look() == Month(date(2026, 11, 21), date(2026, 11, 1), [21], 1, exact=True)


def test_a_second_one_on_the_same_day_changes_nothing(clock: Clock, plaza: World) -> None:
    assert come() == come() == ("2026-11-21", 1)
    clock.go_on(hours=11)
    assert come() == ("2026-11-21", 1)
    assert len(set(plaza.queues.messages[CHECKINS])) == 1, "the same, until MySQL has it"
    plaza.queues.drain()
    assert come() == ("2026-11-21", 1)
    assert plaza.queues.messages[CHECKINS] == []
    assert rows() == ["2026-11-21"]


def test_of_many_at_once_one_counts(clock: Clock) -> None:
    look()  # brings the month into Redis
    keys = (KEYS.head, KEYS.month(date(2026, 11, 21)), KEYS.outbox, KEYS.outboxes)
    args = (date(2026, 11, 21).toordinal(), 21, ADA, 1, 100)
    barrier, answers = threading.Barrier(16, timeout=60), []

    def try_it() -> None:
        with own_client() as own:
            barrier.wait()
            answers.extend([own.eval(CHECK_IN.source, 4, *keys, *args)[0] for _ in range(10)])

    threads = [threading.Thread(target=try_it) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (answers.count("CHANGED"), answers.count("UNCHANGED")) == (1, 159)


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
@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_a_streak_goes_on_over_the_ends_of_months_and_years(
    clock: Clock, last: str, month: str, days: list[int], warm: bool
) -> None:
    insert_run(last, 400)
    if warm:
        look(last[:7])
    clock.set(f"{date.fromisoformat(last) + timedelta(days=1)}T12:00:00")
    assert come()[1] == 401
    seen = look(month)
    assert (seen.days, seen.streak) == (days, 401)


def test_day_after_day_the_streak_grows_and_a_day_left_out_ends_it(clock: Clock) -> None:
    clock.set("2026-12-29T12:00:00")
    for streak in range(1, 71):
        assert come()[1] == streak
        clock.go_on(days=1)
    assert look("2027-03").streak == 70, "today is not over yet"
    clock.go_on(days=1)
    assert look("2027-03").streak == 0
    assert come()[1] == 1
    assert look("2027-01").days == list(range(1, 32))
    assert look("2027-02").days == list(range(1, 29))


def test_a_month_is_read_by_whoever_it_is_of(clock: Clock) -> None:
    insert("2026-10-01", "2026-10-31", "2026-11-01", "2026-11-30")
    for _ in ("cold", "warm"):
        assert look("2026-10").days == [1, 31]
        assert look("2026-11").days == [1, 30]
        assert look("2026-09").days == []
    assert daily_checkin.read_month(8, date(2026, 11, 1)).days == []


@pytest.mark.parametrize("month", ["1000-01", "2024-12", "2027-01", "9999-12"])
def test_months_that_nobody_can_have_make_no_keys(clock: Clock, month: str) -> None:
    insert_run("2026-11-21", 5)
    seen = look(month)
    assert (seen.days, seen.streak) == ([], 5)
    months = {k.rpartition(":")[2] for k in find_keys(f"{KEYS.head}:*")}
    assert months <= {"2026-11", "lease"}


# ---------------------------------------------------------------- which day it is


def test_the_zone_in_the_profile_says_which_day_it_is(clock: Clock) -> None:
    clock.set("2026-11-20T16:30:00")
    move_to("Asia/Shanghai")
    assert come() == ("2026-11-21", 1)
    assert str(daily_checkin.check_in(8).today) == "2026-11-20"


def test_the_zone_is_shown_to_oneself_and_changed_by_oneself(clock: Clock) -> None:
    assert ask("users.get_me", "api/users")[1]["time_zone"] == "UTC"
    asked = event("users.change_me") | {"body": '{"time_zone": "Europe/Berlin"}'}
    assert '"time_zone":"Europe/Berlin"' in handler("api/users")(asked, None)["body"]
    for _ in ("warm", "cold"):
        assert ask("users.get_me", "api/users")[1]["time_zone"] == "Europe/Berlin"
        redis.execute("FLUSHALL")
    assert "time_zone" not in ask("users.get_user_without_session", "api/users")[1]
    for bad in ("Mars/Base", "", "../UTC"):
        asked = event("users.change_me") | {"body": f'{{"time_zone": "{bad}"}}'}
        assert handler("api/users")(asked, None)["statusCode"] == 400


def test_through_both_changes_of_the_clock_each_day_counts_once(clock: Clock) -> None:
    clock.set("2026-01-01T12:00:00")
    move_to("Europe/Berlin")
    for last_night in ("2026-03-29", "2026-10-25"):
        begin = date.fromisoformat(last_night) - timedelta(days=2)
        clock.set(f"{begin}T12:00:00")
        days = set()
        for _ in range(5 * 24):  # every hour of five days
            days.add(come()[0])
            clock.go_on(hours=1)
        expected = {str(begin + timedelta(days=i)) for i in range(5)}
        assert expected <= days <= expected | {str(begin + timedelta(days=5))}
        assert come()[1] == len(days)


def test_who_says_to_be_further_west_gets_no_missed_day_back(clock: Clock) -> None:
    """The streak broke at midnight in Berlin; in Honolulu it is yesterday still."""
    move_to("Europe/Berlin")
    insert_run("2026-11-19", 10)
    clock.set("2026-11-21T05:00:00")
    move_to("Pacific/Honolulu")
    assert come() == ("2026-11-21", 1)
    assert look().days == [*range(10, 20), 21]


def test_who_says_to_be_further_east_gets_no_day_that_is_nowhere_yet(clock: Clock) -> None:
    clock.set("2026-11-21T11:00:00")
    days = []
    for zone in ("Etc/GMT+12", "UTC", "Pacific/Kiritimati", "Etc/GMT+12", "Pacific/Kiritimati"):
        move_to(zone)
        days.append(come()[0])
    # On Earth it is the 20th, the 21st and the 22nd now; it began as UTC, so the 20th was over.
    assert days == ["2026-11-21", "2026-11-21", "2026-11-22", "2026-11-22", "2026-11-22"]
    assert come()[1] == 2


def test_a_day_ahead_is_a_day_less_to_come(clock: Clock) -> None:
    """Whatever somebody says: no more check-ins than days that have begun anywhere since."""
    clock.set("2026-11-01T00:30:00")
    zones = ["Pacific/Kiritimati", "Etc/GMT+12", "UTC", "Asia/Shanghai", "Pacific/Honolulu"]
    for hour in range(24 * 20):
        move_to(zones[hour % len(zones)])
        come()
        clock.go_on(hours=1)
    days = look("2026-11").days
    assert days == list(range(1, 22)), "the 21st has begun in Kiritimati"
    assert look("2026-11").streak == 21


def test_who_really_moves_west_loses_nothing(clock: Clock) -> None:
    move_to("Asia/Tokyo")
    insert_run("2026-11-20", 5)
    clock.set("2026-11-21T01:00:00")
    assert come() == ("2026-11-21", 6)
    move_to("America/Los_Angeles")  # where it is the 20th
    assert come() == ("2026-11-21", 6)
    assert look().streak == 6
    clock.set("2026-11-22T07:59:00")
    assert come() == ("2026-11-21", 6)
    clock.set("2026-11-22T08:00:00")
    assert come() == ("2026-11-22", 7)


def test_a_zone_that_this_process_has_not_heard_of_takes_no_day_back(clock: Clock) -> None:
    clock.set("2026-11-30T23:00:00")
    insert_run("2026-11-30", 3)
    assert come() == ("2026-11-30", 3)
    move_to("Asia/Tokyo")
    assert come() == ("2026-12-01", 4)
    redis.execute("HSET", user_store.zone_key(ADA), "value", "UTC ")
    month = daily_checkin.check_in(ADA)
    assert (str(month.today), month.days, month.streak) == ("2026-12-01", [1], 4)
    assert str(look().today) == "2026-12-01"


# ---------------------------------------------------------------- nothing accepted is lost


def test_a_check_in_that_sqs_refused_survives_the_loss_of_redis(
    clock: Clock, plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a queue that is away, what was answered is in MySQL before the answer."""
    insert_run("2026-11-20", 3)
    plaza.queues.away = True
    assert come() == ("2026-11-21", 4)
    assert "checkin_saved_directly" in capsys.readouterr().out
    assert (rows()[-1], outbox()) == ("2026-11-21", {})
    redis.execute("FLUSHALL")
    assert (look().days, look().streak) == ([18, 19, 20, 21], 4)


def away_from_mysql(facts: object) -> int:
    raise MysqlDown("MySQL is away (a test says so)")


def test_without_a_second_copy_there_is_no_answer_until_there_is_one(
    clock: Clock, plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    look()
    plaza.queues.away = True
    with monkeypatch.context() as patch:
        patch.setattr(mysql_store, "insert", away_from_mysql)
        for _ in range(2):
            with pytest.raises(MysqlDown):
                come()
    plaza.queues.away = False
    assert come() == ("2026-11-21", 1)
    redis.execute("FLUSHALL")
    plaza.queues.drain()
    assert rows() == ["2026-11-21"]


def test_a_check_in_whose_reply_was_lost_is_sent_by_the_next(clock: Clock, plaza: World) -> None:
    """Given a day that Redis has set and nobody sent, the repeat sends it."""
    look()
    redis_store.check_in(ADA, date(2026, 11, 21), 1_795_262_400_000_000)
    assert plaza.queues.messages[CHECKINS] == []
    assert come() == ("2026-11-21", 1)
    [body] = plaza.queues.messages[CHECKINS]
    assert CheckInEvent.from_json(body).version_us == 1_795_262_400_000_000, "as it was accepted"


def test_days_that_were_given_up_are_in_the_streak(
    clock: Clock, plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given days that Redis lost and MySQL never got, their messages dead, the next sees them."""
    for _ in range(4):
        come()
        clock.go_on(days=1)
    facts = [CheckInEvent.from_json(body) for body in plaza.queues.take(CHECKINS)]
    redis.execute("FLUSHALL")
    assert come() == ("2026-11-25", 1), "as far as anybody knows"
    with monkeypatch.context() as patch:
        patch.setattr(mysql_store, "insert", away_from_mysql)
        with pytest.raises(MysqlDown):
            persist.persist_checkins(facts)
    assert come() == ("2026-11-25", 5)
    assert (look().days, look().exact) == ([21, 22, 23, 24, 25], True)
    plaza.let_sweeps_be_due()
    assert sweep.sweep_checkins(grace_us=-(2**50)) == 5
    plaza.queues.drain()
    assert len(rows()) == 5
    assert outbox() == {}


def test_adopting_what_redis_and_mysql_have_changes_nothing_in_the_end(
    clock: Clock, plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    come()
    facts = [CheckInEvent.from_json(body) for body in plaza.queues.messages[CHECKINS]]
    plaza.queues.drain()
    before = look()
    with monkeypatch.context() as patch:
        patch.setattr(mysql_store, "insert", away_from_mysql)
        for _ in range(2):
            with pytest.raises(MysqlDown):
                persist.persist_checkins(facts)
    assert look() == before
    persist.persist_checkins(facts)
    assert (look(), outbox(), rows()) == (before, {}, ["2026-11-21"])


def test_what_never_reached_the_queue_is_swept(clock: Clock, plaza: World) -> None:
    now_us = redis_us()  # what is accepted by this clock has to be of its day
    clock.now_s = now_us / 1e6
    day = datetime.fromtimestamp(clock.now_s, UTC).date()
    look(f"{day:%Y-%m}")
    redis_store.check_in(ADA, day, now_us)
    assert rows() == []
    let_wait()
    assert sweep.sweep_checkins() == 1
    plaza.queues.drain()
    assert (rows(), outbox()) == ([day.isoformat()], {})
    assert sweep.sweep_checkins(grace_us=0) == 0
    assert not redis.execute("EXISTS", KEYS.outboxes)


def let_wait(us: int = 60_000_000) -> None:
    """As if what is in the outbox had been accepted that long ago, by the clock of Redis."""
    then = redis_us() - us
    for day in outbox():
        redis.execute("HSET", KEYS.outbox, day, then)
    redis.execute("ZADD", KEYS.outboxes, then, ADA)


def test_the_sweep_waits_for_the_consumer_and_longer_each_time(clock: Clock, plaza: World) -> None:
    look()
    redis_store.check_in(ADA, date(2026, 11, 21), 1)
    let_wait(10_000_000)
    assert sweep.sweep_checkins() == 0, "it is on its way"
    let_wait(60_000_000)
    assert sweep.sweep_checkins() == 1
    assert sweep.sweep_checkins() == 0, "as long again as it has waited"
    assert 29e6 < redis.execute("ZSCORE", KEYS.outboxes, ADA) - now_us() < 31e6, (
        "a minute, less grace"
    )


def now_us() -> float:
    return float(redis_us())


def test_the_sweep_holds_back_while_the_queue_is_behind(clock: Clock, plaza: World) -> None:
    come()
    let_wait()
    plaza.queues.messages[CHECKINS] = ["{}"] * 10_001
    assert sweep.sweep_checkins() == 0


def test_a_batch_in_any_order_and_more_than_once_is_saved_once(clock: Clock, plaza: World) -> None:
    for _ in range(3):
        come()
        clock.go_on(days=1)
    bodies = plaza.queues.take(CHECKINS)
    facts = [CheckInEvent.from_json(body) for body in reversed(bodies * 3)]
    persist.persist_checkins(facts[:5])
    persist.persist_checkins(facts)
    assert rows() == ["2026-11-21", "2026-11-22", "2026-11-23"]
    assert (look().days, look().streak, outbox()) == ([21, 22, 23], 3, {})


def test_a_batch_of_a_thousand_is_as_many_statements_as_one_of_one(clock: Clock) -> None:
    def cost(number: int) -> int:
        facts = [CheckInEvent(user, date(2026, 11, 21), 1) for user in range(100, 100 + number)]
        before = statements()
        persist.persist_checkins(facts)
        return statements() - before

    assert cost(1) == cost(1000)


def test_a_consumer_that_died_before_it_told_redis_comes_again(
    clock: Clock, plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    come()
    with monkeypatch.context() as patch:
        patch.setattr(redis_store, "acknowledge_all", lambda facts: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            persist.persist_checkins(
                [CheckInEvent.from_json(b) for b in plaza.queues.messages[CHECKINS]]
            )
    assert (rows(), len(outbox())) == (["2026-11-21"], 1)
    plaza.queues.drain()
    assert (rows(), outbox()) == (["2026-11-21"], {})


# ---------------------------------------------------------------- Redis lost its data


def test_after_redis_lost_everything_streak_and_days_are_the_same(
    clock: Clock, plaza: World
) -> None:
    clock.set("2026-10-20T12:00:00")
    for _ in range(40):
        come()
        clock.go_on(days=1)
    plaza.queues.drain()
    before = look("2026-10"), look("2026-11")
    redis.execute("FLUSHALL")
    assert (look("2026-10"), look("2026-11")) == before
    redis.execute("FLUSHALL")
    assert come() == ("2026-11-29", 41)


def test_what_was_only_on_the_queue_arrives_and_is_neither_lost_nor_doubled(
    clock: Clock, plaza: World
) -> None:
    insert_run("2026-11-20", 3)
    come()
    redis.execute("FLUSHALL")
    assert look().streak == 3, "nobody knows of today now"
    assert come() == ("2026-11-21", 4), "once more, by who saw that it was gone"
    assert len(plaza.queues.messages[CHECKINS]) == 2
    plaza.queues.drain()
    assert rows()[-2:] == ["2026-11-20", "2026-11-21"]
    assert (look().days, look().streak) == ([18, 19, 20, 21], 4)


def test_yesterday_that_arrives_after_today_joins_the_streak(clock: Clock, plaza: World) -> None:
    insert_run("2026-11-19", 3)
    look()
    clock.set("2026-11-20T12:00:00")
    come()
    late = plaza.queues.take(CHECKINS)
    redis.execute("FLUSHALL")
    clock.go_on(days=1)
    assert come() == ("2026-11-21", 1), "as far as anybody knows"
    plaza.queues.messages[CHECKINS] += late
    plaza.queues.drain()
    assert (look().days, look().streak) == ([17, 18, 19, 20, 21], 5)


def test_a_late_fact_of_another_month_joins_too(clock: Clock, plaza: World) -> None:
    clock.set("2026-11-30T12:00:00")
    insert_run("2026-11-29", 3)
    come()
    late = plaza.queues.take(CHECKINS)
    redis.execute("FLUSHALL")
    clock.go_on(days=1)
    assert (come(), look("2026-11").days) == (("2026-12-01", 1), [27, 28, 29])
    persist.persist_checkins([CheckInEvent.from_json(body) for body in late])
    assert look("2026-12").streak == 5, "the outbox is counted with it"
    assert look("2026-11").days == [27, 28, 29, 30]


def test_what_is_in_the_outbox_is_not_forgotten_with_the_rest(clock: Clock, plaza: World) -> None:
    insert_run("2026-11-20", 3)
    come()
    redis.execute("DEL", KEYS.head, KEYS.month(date(2026, 11, 1)))  # evicted
    assert (look().days, look().streak) == ([18, 19, 20, 21], 4)
    clock.go_on(days=1)
    assert come() == ("2026-11-22", 5)


def test_what_is_saved_while_it_is_read_is_not_missed(
    clock: Clock, plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day is saved and settled between a reader's SELECT and their fill."""
    insert_run("2026-11-19", 2)
    late = CheckInEvent(ADA, date(2026, 11, 20), int(clock.now_s * 1e6))
    read = mysql_store.read
    tries: list[object] = []

    def read_slowly(*args: Any) -> Any:
        found = read(*args)
        if not tries:
            persist.persist_checkins([late])
        tries.append(1)
        return found

    monkeypatch.setattr(mysql_store, "read", read_slowly)
    assert (look().days, look().streak) == ([18, 19, 20], 3)
    assert len(tries) == 2


def test_two_who_read_at_once_do_not_get_in_each_others_way(clock: Clock) -> None:
    insert_run("2026-11-21", 2)
    first, second = redis_store.acquire_lease(ADA), redis_store.acquire_lease(ADA)
    recorded = mysql_store.read(ADA, date(2026, 11, 1))
    for lease in (first, second):
        assert redis_store.hydrate(ADA, lease, date(2026, 11, 1), recorded)


# ---------------------------------------------------------------- parts that are away


def test_without_redis_a_check_in_is_taken_as_a_wish(
    clock: Clock, plaza: World, redis_away: Away
) -> None:
    move_to("Asia/Tokyo")
    insert_run("2026-11-20", 3)
    with redis_away():
        status, said = ask("checkins.check_in", "api/checkins")
        assert (status, said["today"], said["streak"], said["days"], said["exact"]) == (
            202,
            "2026-11-21",
            None,
            None,
            False,
        )
        seen = look()
        assert (seen.days, seen.streak, seen.exact) == ([18, 19, 20], 3, False)
    plaza.queues.drain()
    assert (look().days, look().streak) == ([18, 19, 20, 21], 4)


def test_a_redis_that_kept_its_data_learns_of_the_wish(
    clock: Clock, plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert_run("2026-11-20", 3)
    look()
    with monkeypatch.context() as patch:

        def away(*args: Any) -> Any:
            raise RedisDown("Redis is away (a test says so)")

        patch.setattr(redis_store, "check_in", away)
        assert daily_checkin.check_in(ADA).streak is None
    assert look().streak == 3
    plaza.queues.drain()
    assert (look().days, look().streak) == ([18, 19, 20, 21], 4)


def test_without_redis_and_the_queue_it_is_refused(
    clock: Clock, plaza: World, redis_away: Away
) -> None:
    plaza.queues.away = True
    with redis_away(), pytest.raises(QueueDown):
        daily_checkin.check_in(ADA)


def test_a_batch_that_can_not_tell_redis_comes_again(
    clock: Clock, plaza: World, redis_away: Away
) -> None:
    with redis_away():
        daily_checkin.check_in(ADA)
        with pytest.raises(Unavailable):
            plaza.queues.drain()


def test_without_mysql_who_is_warm_checks_in(clock: Clock, plaza: World, mysql_away: Away) -> None:
    insert_run("2026-11-20", 3)
    look()
    with mysql_away():
        assert come() == ("2026-11-21", 4)
        assert look().days == [18, 19, 20, 21]
        with pytest.raises(MysqlDown):
            daily_checkin.check_in(8)
    plaza.queues.drain()
    assert rows()[-1] == "2026-11-21"


# ---------------------------------------------------------------- what it costs


def test_warm_it_is_two_round_trips_and_nothing_of_mysql(clock: Clock, plaza: World) -> None:
    come()
    clock.go_on(days=1)
    asking: list[Callable[[], object]] = [come, come, look]
    for ask_it in asking:
        before = statements()
        with count_round_trips() as counter:
            ask_it()
        assert (counter.sent, statements() - before) == (2, 1)


def test_a_user_takes_little_of_redis(clock: Clock, plaza: World) -> None:
    insert_run("2026-11-20", 400)
    come()
    plaza.queues.drain()
    keys = find_keys(f"{KEYS.head}*")
    assert sum(redis.execute("MEMORY", "USAGE", key) for key in keys) < 400
    for key in keys:
        assert 0 < redis.execute("TTL", key) <= 44 * 86_400


# ---------------------------------------------------------------- the routes


def test_the_routes_answer_as_the_contract_says(clock: Clock) -> None:
    month = {"today": "2026-11-21", "month": "2026-11", "days": [21], "total": 1, "streak": 1}
    assert ask("checkins.check_in", "api/checkins") == (200, month | {"exact": True})
    assert ask("checkins.check_in", "api/checkins") == (200, month | {"exact": True})
    assert ask("checkins.list_checkins", "api/checkins") == (200, month | {"exact": True})


@pytest.mark.parametrize("month", ["", "2026", "2026-13", "2026-1", "0000-01", "2026-11-21", "x"])
def test_what_is_no_month_is_refused(clock: Clock, month: str) -> None:
    asked = event("checkins.list_checkins")
    asked |= {"rawQueryString": f"month={month}", "queryStringParameters": {"month": month}}
    assert handler("api/checkins")(asked, None)["statusCode"] == 400


@pytest.mark.parametrize("name", ["check_in", "list_checkins"])
def test_it_takes_a_session(clock: Clock, name: str) -> None:
    asked = event(f"checkins.{name}")
    asked["requestContext"]["authorizer"]["lambda"] = {}
    assert handler("api/checkins")(asked, None)["statusCode"] == 401


def test_the_consumer_takes_its_samples(clock: Clock, plaza: World) -> None:
    save = handler("queue/save_checkins")
    assert save(event("save_checkins.batch"), None) == {"batchItemFailures": []}
    assert (rows(7), rows(8)) == (["2026-11-20"], ["2026-11-21"])

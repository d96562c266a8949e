"""Sliding windows. ``let_pass`` moves the attempts instead of the time."""

from __future__ import annotations

import threading

import pytest

from plaza.infra.http import limits
from plaza.infra.http.limits import Attempt, Window, limit_key
from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from tests.integration.conftest import Away
from tests.support.keyspace import own_client
from tests.support.plaza import World
from tests.support.sign_in_client import let_pass

MINUTE, HOUR = Window(60, 1), Window(3600, 5)
BOTH = (MINUTE, HOUR)


def attempt(subject: str = "ada") -> Attempt:
    return Attempt("sign_in", subject)


def counted(subject: str = "ada") -> int:
    return int(redis.execute("ZCARD", limit_key(attempt(subject))))


def test_a_refused_attempt_returns_its_wait(plaza: World) -> None:
    assert limits.admit(attempt(), BOTH) == 0
    assert 59_000 < limits.admit(attempt(), BOTH) <= 60_000
    assert counted() == 1


def test_an_attempt_is_admitted_exactly_at_the_end_of_the_window(plaza: World) -> None:
    assert limits.admit(attempt(), BOTH) == 0
    let_pass(50_000)
    assert 0 < limits.admit(attempt(), BOTH) <= 10_000
    let_pass(9_000)
    assert 0 < limits.admit(attempt(), BOTH) <= 1_000
    let_pass(1_000)
    assert limits.admit(attempt(), BOTH) == 0


def test_a_refused_attempt_does_not_count(plaza: World) -> None:
    assert limits.admit(attempt(), BOTH) == 0
    let_pass(40_000)
    waits = [limits.admit(attempt(), BOTH) for _ in range(20)]
    assert all(0 < wait <= 20_000 for wait in waits)
    assert waits == sorted(waits, reverse=True)
    let_pass(20_000)
    assert limits.admit(attempt(), BOTH) == 0


def test_the_sixth_attempt_of_an_hour_waits_for_the_first_to_expire(plaza: World) -> None:
    for _ in range(5):
        assert limits.admit(attempt(), BOTH) == 0
        let_pass(61_000)
    wait_ms = limits.admit(attempt(), BOTH)
    assert 3_290_000 < wait_ms <= 3_295_000, "3,600 s minus five times 61 s"
    let_pass(3_280_000)
    assert 0 < limits.admit(attempt(), BOTH) <= 15_000
    let_pass(15_000)
    assert limits.admit(attempt(), BOTH) == 0
    assert 59_000 < limits.admit(attempt(), BOTH) <= 61_000, "the second attempt has to expire"


def test_windows_slide(plaza: World) -> None:
    window = (Window(60, 3),)
    for _ in range(3):
        assert limits.admit(attempt(), window) == 0
        let_pass(15_000)
    assert 14_000 < limits.admit(attempt(), window) <= 15_000
    let_pass(15_000)
    assert limits.admit(attempt(), window) == 0
    assert 14_000 < limits.admit(attempt(), window) <= 15_000


def test_a_repeated_attempt_counts_once(plaza: World) -> None:
    once = attempt()
    assert [limits.admit(once, BOTH) for _ in range(3)] == [0, 0, 0]
    assert counted() == 1


def test_a_withdrawn_attempt_does_not_count(plaza: World) -> None:
    once = attempt()
    limits.admit(once, BOTH)
    limits.withdraw(once)
    assert counted() == 0
    assert limits.admit(attempt(), BOTH) == 0


def test_subjects_and_actions_are_limited_separately(plaza: World) -> None:
    assert limits.admit(attempt("ada"), BOTH) == 0
    assert limits.admit(attempt("bob"), BOTH) == 0
    assert limits.admit(Attempt("send_code", "ada"), BOTH) == 0
    assert limits.admit(attempt("ada"), BOTH) > 0


def test_redis_keeps_max_attempts_for_the_longest_window(plaza: World) -> None:
    for _ in range(20):
        limits.admit(attempt(), (Window(60, 3),))
        let_pass(10_000)
    assert counted() <= 4
    assert 0 < redis.execute("PTTL", limit_key(attempt())) <= 60_000


def test_concurrent_attempts_are_admitted_up_to_the_maximum(plaza: World) -> None:
    script = limits._ADMIT
    barrier, waits_ms = threading.Barrier(16, timeout=60), []

    def attempt_20_times(number: int) -> None:
        with own_client() as own:
            barrier.wait()
            for i in range(20):
                args = (f"{number}-{i}", 60_000, 7)
                waits_ms.append(own.eval(script.source, 1, limit_key(attempt()), *args))

    threads = [threading.Thread(target=attempt_20_times, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(waits_ms), waits_ms.count(0)) == (320, 7)


def test_admit_raises_without_redis(plaza: World, redis_away: Away) -> None:
    with redis_away(), pytest.raises(RedisDown):
        limits.admit(attempt(), BOTH)

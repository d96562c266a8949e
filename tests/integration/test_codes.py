"""Codes in Redis: used once, burnt by wrong tries, gone in time, and never there as digits."""

from __future__ import annotations

import threading

import pytest

from plaza.auth import redis_codes
from plaza.auth.redis_codes import Used, code_key
from plaza.infra import redis
from tests.keyspace import find_keys, own_client
from tests.plaza import World

WHO, MAC, ANOTHER = "ada", "a" * 64, "b" * 64


@pytest.fixture
def sent(plaza: World) -> None:
    redis_codes.keep(WHO, MAC)


def test_a_right_code_works_once(sent: None) -> None:
    used = redis_codes.check(WHO, MAC)
    assert used is not None
    assert (299_000 < used.left_ms <= 300_000, used.wrong) == (True, 0)
    assert redis_codes.check(WHO, MAC) is None
    assert find_keys("*") == []


def test_four_wrong_tries_are_forgiven_and_the_fifth_burns_it(sent: None) -> None:
    for _ in range(4):
        assert redis_codes.check(WHO, ANOTHER) is None
    used = redis_codes.check(WHO, MAC)
    assert used is not None
    assert used.wrong == 4
    redis_codes.put_back(WHO, MAC, used)
    assert redis_codes.check(WHO, ANOTHER) is None
    assert redis_codes.check(WHO, MAC) is None, "burnt"


def test_wrong_tries_do_not_make_it_live_longer(sent: None) -> None:
    redis.execute("PEXPIRE", code_key(WHO), 10_000)
    redis_codes.check(WHO, ANOTHER)
    assert 9_000 < redis.execute("PTTL", code_key(WHO)) <= 10_000


def test_a_wrong_try_where_there_is_no_code_leaves_nothing_behind(plaza: World) -> None:
    assert redis_codes.check(WHO, MAC) is None
    assert find_keys("*") == []


def test_it_is_gone_after_its_time(sent: None) -> None:
    redis.execute("PEXPIRE", code_key(WHO), 0)
    assert redis_codes.check(WHO, MAC) is None


def test_a_new_code_takes_the_place_of_the_old_with_all_its_tries(sent: None) -> None:
    for _ in range(4):
        redis_codes.check(WHO, ANOTHER)
    redis_codes.keep(WHO, ANOTHER)
    assert redis_codes.check(WHO, MAC) is None
    assert redis.client().hgetall(code_key(WHO)) == {"mac": ANOTHER, "wrong": "1"}
    assert redis_codes.check(WHO, ANOTHER)


def test_a_code_that_is_put_back_has_the_time_and_the_tries_that_it_had(sent: None) -> None:
    redis_codes.check(WHO, ANOTHER)
    redis.execute("PEXPIRE", code_key(WHO), 20_000)
    used = redis_codes.check(WHO, MAC)
    assert used is not None
    redis_codes.put_back(WHO, MAC, used)
    assert 18_000 < redis.execute("PTTL", code_key(WHO)) <= 20_000
    assert redis.client().hgetall(code_key(WHO)) == {"mac": MAC, "wrong": "1"}


def test_a_code_is_not_put_back_over_a_newer_one(sent: None) -> None:
    used = redis_codes.check(WHO, MAC)
    assert used is not None
    redis_codes.keep(WHO, ANOTHER)
    redis_codes.put_back(WHO, MAC, used)
    assert redis_codes.check(WHO, MAC) is None
    assert redis_codes.check(WHO, ANOTHER)


def test_a_code_that_is_put_back_in_its_last_moment_still_ends(sent: None) -> None:
    redis_codes.check(WHO, MAC)
    redis_codes.put_back(WHO, MAC, Used(left_ms=0, wrong=0))
    assert redis.execute("PTTL", code_key(WHO)) <= 1


def at_once(tries: int, mac: str) -> list[str]:
    """The answers to ``tries`` checks from as many connections, all at the same time."""
    answers: list[str] = []
    barrier = threading.Barrier(tries)
    script = redis_codes._CHECK

    def try_it() -> None:
        with own_client() as own:
            own.ping()
            barrier.wait()
            answers.append(own.eval(script.source, 1, code_key(WHO), mac, 5)[0])

    threads = [threading.Thread(target=try_it) for _ in range(tries)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_of_a_hundred_uses_at_once_one_is_right(sent: None) -> None:
    answers = at_once(100, MAC)
    assert (len(answers), answers.count("RIGHT")) == (100, 1)


def test_wrong_tries_at_once_are_all_counted(sent: None) -> None:
    assert set(at_once(5, ANOTHER)) == {"WRONG"}
    assert redis_codes.check(WHO, MAC) is None, "burnt"

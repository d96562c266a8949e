"""Challenges in Redis: a code works once, wrong tries burn it, and no digits or phone are there."""

from __future__ import annotations

import threading

import pytest

from plaza.auth import redis_challenges
from plaza.auth.redis_challenges import challenge_key
from plaza.infra import redis
from tests.support.keyspace import find_keys, own_client
from tests.support.plaza import World

SHA, MAC, ANOTHER, HIDDEN = "c" * 64, "a" * 64, "b" * 64, "d" * 64


@pytest.fixture
def sent(plaza: World) -> None:
    redis_challenges.store(SHA, MAC, HIDDEN)


def check(mac: str, name: str) -> list[str]:
    """One try under a name, as the client of Redis sends it."""
    found: list[str] = redis.run(redis_challenges._CHECK, (challenge_key(SHA),), (mac, 5, name))
    return found


def test_a_right_code_works_once(sent: None) -> None:
    assert redis_challenges.check(SHA, MAC) == HIDDEN
    assert redis_challenges.check(SHA, MAC) is None


def test_four_wrong_tries_are_forgiven_and_the_fifth_burns_it(sent: None) -> None:
    for _ in range(4):
        assert redis_challenges.check(SHA, ANOTHER) is None
    assert redis_challenges.check(SHA, MAC) == HIDDEN
    redis_challenges.release(SHA)
    assert redis_challenges.check(SHA, ANOTHER) is None
    assert redis_challenges.check(SHA, MAC) is None, "burnt"
    assert find_keys("*") == []


def test_no_try_makes_it_live_longer(sent: None) -> None:
    assert 299_000 < redis.execute("PTTL", challenge_key(SHA)) <= 300_000
    redis.execute("PEXPIRE", challenge_key(SHA), 10_000)
    redis_challenges.check(SHA, ANOTHER)
    redis_challenges.check(SHA, MAC)
    redis_challenges.release(SHA)
    assert 9_000 < redis.execute("PTTL", challenge_key(SHA)) <= 10_000


def test_a_try_where_there_is_no_challenge_leaves_nothing_behind(plaza: World) -> None:
    assert redis_challenges.check(SHA, MAC) is None
    redis_challenges.release(SHA)
    assert find_keys("*") == []


def test_it_is_gone_after_its_time(sent: None) -> None:
    redis.execute("PEXPIRE", challenge_key(SHA), 0)
    assert redis_challenges.check(SHA, MAC) is None


def test_a_right_try_whose_reply_was_lost_is_right_when_it_is_sent_again(sent: None) -> None:
    assert check(MAC, "one") == ["RIGHT", HIDDEN]
    assert check(MAC, "two") == ["WRONG"]
    assert check(MAC, "one") == ["RIGHT", HIDDEN]


def test_a_wrong_try_whose_reply_was_lost_counts_once_when_it_is_sent_again(sent: None) -> None:
    for name in ("one", "two", "three", "four"):
        assert check(ANOTHER, name) == check(ANOTHER, name) == ["WRONG"]
    assert check(MAC, "five") == ["RIGHT", HIDDEN]


def test_a_code_that_is_released_works_again_with_the_tries_that_it_had(sent: None) -> None:
    redis_challenges.check(SHA, ANOTHER)
    assert redis_challenges.check(SHA, MAC) == HIDDEN
    redis_challenges.release(SHA)
    assert redis.client().hget(challenge_key(SHA), "wrong_tries") == "1"
    assert redis_challenges.check(SHA, MAC) == HIDDEN
    assert redis_challenges.check(SHA, MAC) is None


def at_once(tries: int, mac: str) -> list[str]:
    """The outcomes of ``tries`` checks from as many connections, all at the same time."""
    outcomes: list[str] = []
    barrier = threading.Barrier(tries, timeout=60)
    script = redis_challenges._CHECK

    def try_it(name: str) -> None:
        with own_client() as own:
            own.ping()
            barrier.wait()
            outcomes.append(own.eval(script.source, 1, challenge_key(SHA), mac, 5, name)[0])

    threads = [threading.Thread(target=try_it, args=(f"try {n}",)) for n in range(tries)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_of_a_hundred_uses_at_once_one_is_right(sent: None) -> None:
    outcomes = at_once(100, MAC)
    assert (len(outcomes), outcomes.count("RIGHT")) == (100, 1)


def test_wrong_tries_at_once_are_all_counted(sent: None) -> None:
    assert set(at_once(5, ANOTHER)) == {"WRONG"}
    assert redis_challenges.check(SHA, MAC) is None, "burnt"

"""Challenges in Redis: a code works once, and wrong tries burn it."""

from __future__ import annotations

import threading

import pytest

from plaza.infra.redis import connections, redis
from plaza.people.auth import redis_challenges
from plaza.people.auth.redis_challenges import challenge_key
from tests.support.keyspace import find_keys, own_client
from tests.support.plaza import World

SHA, MAC, OTHER_MAC, ENCRYPTED = "c" * 64, "a" * 64, "b" * 64, "d" * 64


@pytest.fixture
def challenge(plaza: World) -> None:
    redis_challenges.store(SHA, MAC, ENCRYPTED)


def check(mac: str, name: str) -> list[str]:
    """Run the script with a name of the try, as a resent command does."""
    result: list[str] = redis.run(redis_challenges._CHECK, (challenge_key(SHA),), (mac, 5, name))
    return result


def test_a_right_code_works_once(challenge: None) -> None:
    assert redis_challenges.check(SHA, MAC) == (True, ENCRYPTED)
    assert not redis_challenges.check(SHA, MAC).is_right


def test_the_fifth_wrong_try_burns_a_challenge(challenge: None) -> None:
    for _ in range(4):
        assert redis_challenges.check(SHA, OTHER_MAC) == (False, ENCRYPTED)
    assert redis_challenges.check(SHA, MAC) == (True, ENCRYPTED)
    redis_challenges.release(SHA)
    assert not redis_challenges.check(SHA, OTHER_MAC).is_right
    assert not redis_challenges.check(SHA, MAC).is_right, "burnt"
    assert find_keys("*") == []


def test_no_try_extends_the_ttl(challenge: None) -> None:
    assert 299_000 < redis.execute("PTTL", challenge_key(SHA)) <= 300_000
    redis.execute("PEXPIRE", challenge_key(SHA), 10_000)
    redis_challenges.check(SHA, OTHER_MAC)
    redis_challenges.check(SHA, MAC)
    redis_challenges.release(SHA)
    assert 9_000 < redis.execute("PTTL", challenge_key(SHA)) <= 10_000


def test_a_try_without_a_challenge_creates_no_key(plaza: World) -> None:
    assert not redis_challenges.check(SHA, MAC).is_right
    redis_challenges.release(SHA)
    assert find_keys("*") == []


def test_an_expired_challenge_is_refused(challenge: None) -> None:
    redis.execute("PEXPIRE", challenge_key(SHA), 0)
    assert not redis_challenges.check(SHA, MAC).is_right


def test_a_resent_right_try_is_right(challenge: None) -> None:
    assert check(MAC, "one") == ["RIGHT", ENCRYPTED]
    assert check(MAC, "two") == ["WRONG", ENCRYPTED]
    assert check(MAC, "one") == ["RIGHT", ENCRYPTED]


def test_a_resent_wrong_try_counts_once(challenge: None) -> None:
    for name in ("one", "two", "three", "four"):
        assert check(OTHER_MAC, name) == check(OTHER_MAC, name) == ["WRONG", ENCRYPTED]
    assert check(MAC, "five") == ["RIGHT", ENCRYPTED]


def test_a_released_code_works_again_and_keeps_its_wrong_tries(challenge: None) -> None:
    redis_challenges.check(SHA, OTHER_MAC)
    assert redis_challenges.check(SHA, MAC) == (True, ENCRYPTED)
    redis_challenges.release(SHA)
    assert connections.client().hget(challenge_key(SHA), "wrong_tries") == "1"
    assert redis_challenges.check(SHA, MAC) == (True, ENCRYPTED)
    assert not redis_challenges.check(SHA, MAC).is_right


def check_concurrently(tries: int, mac: str) -> list[str]:
    """Return the outcomes of ``tries`` concurrent checks, each on its own connection."""
    outcomes: list[str] = []
    barrier = threading.Barrier(tries, timeout=60)
    script = redis_challenges._CHECK

    def check_once(name: str) -> None:
        with own_client() as own:
            own.ping()
            barrier.wait()
            outcomes.append(own.eval(script.source, 1, challenge_key(SHA), mac, 5, name)[0])

    threads = [threading.Thread(target=check_once, args=(f"try {n}",)) for n in range(tries)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_of_100_concurrent_uses_one_is_right(challenge: None) -> None:
    outcomes = check_concurrently(100, MAC)
    assert (len(outcomes), outcomes.count("RIGHT")) == (100, 1)


def test_concurrent_wrong_tries_are_all_counted(challenge: None) -> None:
    assert set(check_concurrently(5, OTHER_MAC)) == {"WRONG"}
    assert not redis_challenges.check(SHA, MAC).is_right, "burnt"

"""The token bucket in memory, on a fake clock."""

from __future__ import annotations

import pytest

from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime.process import reset_process


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_full_bucket_has_one_burst(clock: Clock) -> None:
    bucket = TokenBucket(rate_per_s=2, burst=3, clock=clock)
    assert [bucket.take() for _ in range(5)] == [True, True, True, False, False]


def test_tokens_are_refilled_at_the_rate(clock: Clock) -> None:
    bucket = TokenBucket(rate_per_s=2, burst=3, clock=clock)
    while bucket.take():
        pass
    clock.now_s += 0.25
    assert bucket.take() is False
    clock.now_s += 0.25
    assert [bucket.take(), bucket.take()] == [True, False]


def test_a_refused_take_costs_no_token(clock: Clock) -> None:
    bucket = TokenBucket(rate_per_s=1, burst=1, clock=clock)
    assert bucket.take()
    for _ in range(8):
        clock.now_s += 0.125
        taken = bucket.take()
    assert taken


def test_an_idle_bucket_has_no_more_than_a_burst(clock: Clock) -> None:
    bucket = TokenBucket(rate_per_s=100, burst=3, clock=clock)
    clock.now_s += 3600
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]


def test_many_takes_get_the_burst_and_the_rate(clock: Clock) -> None:
    bucket = TokenBucket(rate_per_s=20, burst=40, clock=clock)
    taken = 0
    for _ in range(1_000):
        clock.now_s += 0.0078125  # exact in binary: 7.8125 s in all
        taken += bucket.take()
    assert taken == 40 + 156


def test_a_new_process_has_full_buckets(clock: Clock) -> None:
    bucket = TokenBucket(rate_per_s=1, burst=2, clock=clock)
    while bucket.take():
        pass
    reset_process()
    assert [bucket.take() for _ in range(3)] == [True, True, False]

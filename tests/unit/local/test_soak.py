"""Growth that a soak reports or ignores."""

from __future__ import annotations

import pytest

from local.load.soak import WARM_UP, KeyFamily, MemorySample, family_of, find_growth

MB = 1_000_000


def sample(
    used: int = 10 * MB,
    size: int = 4 * MB,
    persistent: int = 100,
    fed: int = 80 * MB,
    worker: int = 60 * MB,
) -> MemorySample:
    families = {"post:#:like:meta": KeyFamily(1000, size, persistent)}
    return MemorySample(0.0, used, families, {17: worker}, fed)


def after_warm_up(last: MemorySample) -> list[str]:
    wild = [sample(used=MB, fed=MB, worker=MB, persistent=0)] * WARM_UP
    return find_growth([*wild, sample(), sample(), last])


def test_growth_during_the_warm_up_is_ignored() -> None:
    assert after_warm_up(sample()) == []


def test_growth_of_keys_is_ignored() -> None:
    assert after_warm_up(sample(used=14 * MB, size=8 * MB)) == []


@pytest.mark.parametrize(
    ("last", "growth"),
    [
        (sample(used=11 * MB), "more memory outside of keys"),
        (sample(persistent=130), "post:#:like:meta: 100 persistent keys became 130"),
        (sample(fed=86 * MB), "the fed consumer grew by 7.5%"),
        (sample(worker=66 * MB), "the biggest worker of SaveReactions grew by 10.0%"),
    ],
)
def test_later_growth_is_reported(last: MemorySample, growth: str) -> None:
    [problem] = after_warm_up(last)
    assert growth in problem


def test_workers_come_and_go_and_the_biggest_is_compared() -> None:
    others = {18: 61 * MB, 19: 20 * MB}
    assert after_warm_up(MemorySample(0.0, 10 * MB, sample().families, others, 80 * MB)) == []


@pytest.mark.parametrize(
    ("key", "family"),
    [
        ("{17}:like:post:9600001:meta", "like:post:#:meta"),
        ("{17}:dirty", "dirty"),
        ("auth{5}:session:" + "0a" * 32, "session:#"),
    ],
)
def test_keys_are_counted_by_their_kind(key: str, family: str) -> None:
    assert family_of(key) == family

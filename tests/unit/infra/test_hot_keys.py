"""The sampler of hot keys."""

from __future__ import annotations

from collections import Counter

import pytest

from plaza.infra.redis import hot_keys
from plaza.infra.redis.commands import Command, key_of_command
from plaza.infra.redis.hot_keys import REPORT_EVERY_S, SAMPLE_EVERY, Sampler


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000_000.0

    def now_us(self) -> int:
        return int(self.now_s * 1e6)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("plaza.infra.runtime.clock.now_us", clock.now_us)
    return clock


GET: Command = ("GET", "{7}:a")


@pytest.mark.parametrize(
    ("command", "key"),
    [
        (("GET", "{7}:a"), "{7}:a"),
        (("HMGET", "{7}:a", "b"), "{7}:a"),
        (("EVALSHA", "f00", 2, "{7}:a", "{7}:b", 1), "{7}:a"),
        (("EVALSHA", "f00", 0), None),
        (("EVALSHA", "f00", 0, "x"), None),
        (("PING",), None),
        (("SCRIPT", "LOAD", "return 1"), None),
        (("FLUSHALL",), None),
    ],
)
def test_a_command_is_counted_for_its_first_key(command: Command, key: str | None) -> None:
    assert key_of_command(command) == key


def test_one_command_in_a_hundred_is_counted(clock: Clock) -> None:
    sampler = Sampler()
    for _ in range(200_000):
        sampler.sample([GET])
    assert sampler.counts["{7}:a"] == pytest.approx(200_000 / SAMPLE_EVERY, rel=0.1)


def test_sampled_counts_are_proportional_to_commands(clock: Clock) -> None:
    """Given pipelines of ten commands with the same keys at the same positions."""
    sampler = Sampler()
    page: list[Command] = [("GET", f"{{7}}:{i % 5}") for i in range(10)]
    for _ in range(50_000):
        sampler.sample(page)
    assert sum(sampler.counts.values()) == pytest.approx(5_000, rel=0.1)
    for count in sampler.counts.values():
        assert count == pytest.approx(1_000, rel=0.25)


def test_the_command_at_the_end_of_a_gap_is_counted(
    clock: Clock,
) -> None:
    sampler = Sampler(gap=lambda: 3)
    sampler.sample([("GET", f"{{7}}:{i}") for i in range(1, 8)])
    sampler.sample([("GET", f"{{7}}:{i}") for i in range(8, 10)])
    assert sampler.counts == Counter({"{7}:3": 1, "{7}:6": 1, "{7}:9": 1})


def test_counts_are_sent_once_a_minute_to_the_node_of_a_command(
    clock: Clock,
) -> None:
    sampler = Sampler(gap=lambda: 1)
    assert sampler.sample([GET] * 3 + [("GET", "{8}:b")]) == []
    clock.now_s += REPORT_EVERY_S
    report_key = f"{{7}}:hot:{int(clock.now_s // 60)}"
    assert sampler.sample([GET]) == [
        ("ZINCRBY", report_key, 4 * SAMPLE_EVERY, "{7}:a"),
        ("ZINCRBY", report_key, SAMPLE_EVERY, "{8}:b"),
        ("ZREMRANGEBYRANK", report_key, 0, -101),
        ("EXPIRE", report_key, 900),
    ]
    assert sampler.sample([GET]) == [], "a report clears the counts"
    assert sampler.counts == Counter({"{7}:a": 1})


def test_a_reset_sampler_reports_no_earlier_counts(clock: Clock) -> None:
    sampler = Sampler(gap=lambda: 1)
    sampler.sample([GET])
    clock.now_s += REPORT_EVERY_S
    sampler.reset()
    assert sampler.sample([GET]) == []
    assert sampler.counts == Counter({"{7}:a": 1})


def test_counted_and_reported_keys_are_limited(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = Sampler(gap=lambda: 1)
    for i in range(5_000):
        sampler.sample([("GET", f"{{7}}:{i}"), GET])
    assert len(sampler.counts) <= 1_001
    assert sampler.counts["{7}:a"] == 5_000, "the hottest key is kept"
    clock.now_s += REPORT_EVERY_S
    assert len(sampler.sample([GET])) == 20 + 2
    assert hot_keys.sampler is not sampler

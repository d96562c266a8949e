"""Counting a sample of commands, and values that are kept for a second once they are hot."""

from __future__ import annotations

from collections import Counter

import pytest

from plaza.infra import hot_keys
from plaza.infra.hot_keys import SAMPLE, TELL_EVERY_S, Command, Sampler, key_of_command
from plaza.infra.hot_values import HotValues


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


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
    sampler = Sampler(clock)
    for _ in range(200_000):
        sampler.notice([GET])
    assert sampler.counts["{7}:a"] == pytest.approx(200_000 / SAMPLE, rel=0.1)


def test_a_key_has_the_share_that_it_has_of_the_commands(clock: Clock) -> None:
    """In pipelines of ten, of which the same place is the same key each time."""
    sampler = Sampler(clock)
    page: list[Command] = [("GET", f"{{7}}:{i % 5}") for i in range(10)]
    for _ in range(50_000):
        sampler.notice(page)
    assert sum(sampler.counts.values()) == pytest.approx(5_000, rel=0.1)
    for count in sampler.counts.values():
        assert count == pytest.approx(1_000, rel=0.25)


def test_which_command_of_a_pipeline_is_counted_is_the_one_at_which_the_count_ends(
    clock: Clock,
) -> None:
    sampler = Sampler(clock, gap=lambda: 3)
    sampler.notice([("GET", f"{{7}}:{i}") for i in range(1, 8)])
    sampler.notice([("GET", f"{{7}}:{i}") for i in range(8, 10)])
    assert sampler.counts == Counter({"{7}:3": 1, "{7}:6": 1, "{7}:9": 1})


def test_once_a_minute_the_counts_go_along_with_a_command_to_the_node_of_its_key(
    clock: Clock,
) -> None:
    sampler = Sampler(clock, gap=lambda: 1)
    assert sampler.notice([GET] * 3 + [("GET", "{8}:b")]) == []
    clock.now_s += TELL_EVERY_S
    place = f"{{7}}:hot:{int(clock.now_s // 60)}"
    assert sampler.notice([GET]) == [
        ("ZINCRBY", place, 4 * SAMPLE, "{7}:a"),
        ("ZINCRBY", place, SAMPLE, "{8}:b"),
        ("ZREMRANGEBYRANK", place, 0, -101),
        ("EXPIRE", place, 900),
    ]
    assert sampler.notice([GET]) == [], "they were told, and it begins anew"
    assert sampler.counts == Counter({"{7}:a": 1})


def test_a_process_counts_and_tells_no_more_than_it_should(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = Sampler(clock, gap=lambda: 1)
    for i in range(5_000):
        sampler.notice([("GET", f"{{7}}:{i}"), GET])
    assert len(sampler.counts) <= 1_001
    assert sampler.counts["{7}:a"] == 5_000, "the hot one stays"
    clock.now_s += TELL_EVERY_S
    assert len(sampler.notice([GET])) == 20 + 2
    assert hot_keys.sampler is not sampler


# ---------------------------------------------------------------- hot values


@pytest.fixture
def values(clock: Clock) -> HotValues[str, int]:
    return HotValues(hot_per_s=20, most=50, clock=clock)


def ask(values: HotValues[str, int], times: int, read: int, key: str = "a") -> tuple[int, int]:
    """(how often it had to be read, the last answer) of so many who ask."""
    reads, answer = 0, -1
    for _ in range(times):
        held = values.ask(key)
        if held is None:
            reads, held = reads + 1, read
            values.keep(key, read)
        answer = held
    return reads, answer


def test_what_is_asked_for_now_and_then_is_read_each_time(
    values: HotValues[str, int], clock: Clock
) -> None:
    for _ in range(50):
        assert ask(values, 19, read=5) == (19, 5)
        clock.now_s += 1


def test_what_is_hot_is_read_once_a_second(values: HotValues[str, int], clock: Clock) -> None:
    reads, _ = ask(values, 1_000, read=5)
    assert reads == 20, "from the twentieth on it is hot"
    for second in range(1, 11):
        clock.now_s += 1
        assert ask(values, 1_000, read=5 + second) == (1, 5 + second)


def test_a_value_is_never_older_than_a_second(values: HotValues[str, int], clock: Clock) -> None:
    ask(values, 100, read=5)
    clock.now_s += 0.99
    assert ask(values, 1, read=6) == (0, 5)
    clock.now_s += 0.01
    assert ask(values, 1, read=6) == (1, 6)


def test_what_was_hot_is_not_so_for_long(values: HotValues[str, int], clock: Clock) -> None:
    ask(values, 100, read=5)
    clock.now_s += 1
    assert ask(values, 5, read=6)[0] == 1
    clock.now_s += 1
    assert ask(values, 5, read=7)[0] == 5


def test_what_changed_here_is_read_again(values: HotValues[str, int]) -> None:
    ask(values, 100, read=5)
    values.drop("a")
    values.drop("never heard of")
    assert ask(values, 10, read=6) == (1, 6)
    values.clear()
    assert ask(values, 10, read=7) == (10, 7)


def test_it_keeps_no_more_than_it_should(values: HotValues[str, int]) -> None:
    for number in range(500):
        ask(values, 30, read=1, key=str(number))
    assert len(values._values) <= 50
    assert len(values._asked) <= 50

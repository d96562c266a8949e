"""The arithmetic of token buckets, in Lua and in Python."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

import pytest

from plaza.infra.redis import redis
from plaza.infra.redis.commands import Command
from plaza.infra.redis.scripts import SHARED
from plaza.infra.redis.token_bucket import take_token

SEQUENCES = 4_000
STEPS = 40
NOW_US = 1_800_000_000_000_000
RATES = [0.001, 0.1, 1 / 3, 0.5, 1, 3, 7.5, 20, 50, 2_000, 30_000, 700_000, 3_000_000]

# Takes of one bucket, each at the time of an argument.
EACH = f"""
{(SHARED / "bucket.inc.lua").read_text()}
local full_us, results = 0, {{}}
for i = 3, #ARGV do
  local next_us, early_us = take_token(full_us, tonumber(ARGV[i]), ARGV[1], ARGV[2])
  if early_us <= 0 then full_us = next_us end
  results[i - 2] = {{string.format('%.0f', next_us), string.format('%.0f', early_us)}}
end
return results
"""


class Sequence(NamedTuple):
    """A bucket and the times of takes."""

    per_s: float
    burst: int
    times_us: list[int]


def draw(rng: random.Random) -> Sequence:
    """Draw bursts, pauses, takes at the edge, and sometimes a clock that goes back."""
    per_s, burst = rng.choice(RATES), rng.choice([0, 1, 2, 3, 20, 50])
    token_us = int(1e6 / per_s)
    pauses: list[Callable[[], int]] = [
        lambda: 0,
        lambda: rng.randint(1, 100),
        lambda: token_us,
        lambda: token_us + 1,
        lambda: rng.randint(0, 3 * token_us),
        lambda: int(token_us * burst * rng.random() * 2),
        lambda: -rng.randint(0, 5 * token_us),
    ]
    weights = [rng.random() for _ in pauses[:-1]] + [rng.choice([0, 0.1])]
    now_us, times_us = NOW_US + rng.randint(0, 10**12), []
    for pause in rng.choices(pauses, weights, k=STEPS):
        now_us += pause()
        times_us.append(now_us)
    return Sequence(per_s, burst, times_us)


def take_all(sequence: Sequence) -> list[tuple[int, int]]:
    """Return the results of Python."""
    full_us, results = 0, []
    for now_us in sequence.times_us:
        next_us, early_us = take_token(full_us, now_us, sequence.per_s, sequence.burst)
        if early_us <= 0:
            full_us = next_us
        results.append((next_us, early_us))
    return results


@pytest.fixture(scope="module")
def sequences() -> list[Sequence]:
    rng = random.Random(20)
    return [draw(rng) for _ in range(SEQUENCES)]


def test_lua_and_python_return_the_same(plaza: object, sequences: list[Sequence]) -> None:
    for start in range(0, SEQUENCES, 500):
        part = sequences[start : start + 500]
        commands: list[Command] = [("EVAL", EACH, 0, s.per_s, s.burst, *s.times_us) for s in part]
        for sequence, results in zip(part, redis.pipeline(commands), strict=True):
            assert [(int(full), int(early)) for full, early in results] == take_all(sequence)


def test_no_period_exceeds_the_burst_and_the_rate(sequences: list[Sequence]) -> None:
    for sequence in sequences:
        per_s, burst, times_us = sequence
        results = take_all(sequence)
        taken = [t for t, (_, early_us) in zip(times_us, results, strict=True) if early_us <= 0]
        for i, since_us in enumerate(taken):
            for n, until_us in enumerate(taken[i:], 1):
                if until_us >= since_us:  # else the clock went back
                    assert n <= burst + (until_us - since_us) * per_s / 1e6 + 1e-6, sequence


def test_after_the_returned_wait_there_is_a_token(sequences: list[Sequence]) -> None:
    for sequence in sequences:
        if sequence.burst == 0:
            continue
        full_us = 0
        for now_us in sequence.times_us:
            next_us, early_us = take_token(full_us, now_us, sequence.per_s, sequence.burst)
            if early_us > 0:
                just = take_token(full_us, now_us + early_us, sequence.per_s, sequence.burst)[1]
                before = take_token(full_us, now_us + early_us - 1, *sequence[:2])[1]
                assert (just, before) == (0, 1)
            else:
                full_us = next_us


@pytest.mark.parametrize("per_s", RATES)
def test_a_full_bucket_has_its_burst_at_one_instant(per_s: float) -> None:
    full_us, taken = 0, 0
    while (result := take_token(full_us, NOW_US, per_s, 20))[1] <= 0:
        full_us, taken = result[0], taken + 1
    assert taken == 20

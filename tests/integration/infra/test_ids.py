"""Ids are unique after failures of Redis, clocks and processes."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import pytest

from cli.paths import ROOT
from plaza.infra.derived import ids
from plaza.infra.derived.ids import BLOCK_SIZE, START_S, SerialsExhausted, new_id
from plaza.infra.redis import connections, redis
from plaza.infra.runtime.process import Lazy
from tests.support.call_log import record_call
from tests.support.plaza import World

DAY_S = 86_400
MIDNIGHT_S = 21_000 * DAY_S
NOON_S = MIDNIGHT_S + DAY_S // 2
AHEAD = 49_000
"""Serials that Redis leases ahead of its clock."""


@dataclass
class Clocks:
    """The clock of this process; the clock of Redis is ``redis_s`` ahead. A sleep advances both."""

    now_s: float = NOON_S
    redis_s: float = 0

    def now_us(self) -> int:
        return round(self.now_s * 1e6)

    def sleep(self, duration_s: float) -> None:
        self.now_s += duration_s


@pytest.fixture
def clocks(plaza: World, monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    lease = ids._LEASE.source.replace("redis.call('TIME')", "{ARGV[2], ARGV[3]}")
    assert "TIME" not in lease

    def run(_: object, keys: tuple[str, ...], args: tuple[int, ...]) -> Any:
        now = divmod(round((clocks.now_s + clocks.redis_s) * 1e6), 1_000_000)
        return redis.execute("EVAL", lease, len(keys), *keys, *args, *now)

    monkeypatch.setattr("plaza.infra.derived.ids.redis.run", run)
    monkeypatch.setattr("plaza.infra.runtime.clock.now_us", clocks.now_us)
    monkeypatch.setattr(
        "plaza.infra.runtime.clock.sleep", lambda duration_s: clocks.sleep(duration_s)
    )
    return clocks


class Process:
    """Makes ids like another process: from a block of its own."""

    def __init__(self) -> None:
        self.block = Lazy(ids._lease)

    def new_ids(self, count: int = 1) -> list[int]:
        ids._block = self.block
        return [new_id() for _ in range(count)]


def day_of(an_id: int) -> int:
    return second_of(an_id) // DAY_S


def second_of(an_id: int) -> int:
    return (an_id >> 32) + START_S


def all_different(*parts: list[int]) -> bool:
    together = [an_id for part in parts for an_id in part]
    return len(set(together)) == len(together)


# ---------------------------------------------------------------- without failures


def test_ids_grow_and_fit_63_bits_and_begin_with_the_time(clocks: Clocks) -> None:
    new = Process().new_ids(BLOCK_SIZE * 3 + 1)
    assert new == sorted(set(new))
    assert 0 < new[0] < new[-1] < 2**63
    clocks.now_s += 1
    [later] = Process().new_ids()
    assert second_of(later) == NOON_S + 1 > second_of(new[-1]) == NOON_S


def test_a_block_is_used_up_before_the_next_lease(
    clocks: Clocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process()
    process.new_ids()
    clocks.now_s += 1
    leases: list[object] = []
    run = redis.run
    monkeypatch.setattr(
        "plaza.infra.derived.ids.redis.run", lambda *args: record_call(leases, args, run(*args))
    )
    process.new_ids(BLOCK_SIZE - 1)
    assert leases == []
    process.new_ids()
    assert len(leases) == 1


MAKE_IDS = """
from plaza.infra.derived.ids import SerialsExhausted, new_id
made = 0
while made < 2500:
    try:
        print(new_id())
        made += 1
    except SerialsExhausted:  # four processes at once may use up a second
        pass
"""


def test_ids_of_concurrent_processes_are_unique(plaza: World) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", MAKE_IDS], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    new = [[int(line) for line in process.communicate()[0].split()] for process in processes]
    assert [len(part) for part in new] == [2_500] * 4
    assert all(part == sorted(part) for part in new)
    assert all_different(*new)


# ---------------------------------------------------------------- Redis lost its data


def test_serials_leased_right_before_redis_lost_its_data_are_not_leased_again(plaza: World) -> None:
    """With the real clock: some blocks, and Redis loses its data within a millisecond."""
    leased: list[int] = []
    for _ in range(10):
        for _ in range(5):
            block = ids._lease()
            leased += range(block.next, block.end)
        redis.execute("FLUSHALL")
    assert all_different(leased)
    assert leased == sorted(leased)


@pytest.mark.parametrize("after_s", [0, 0.0005, 0.9, 1, 5, 3600])
def test_old_blocks_do_not_overlap_leases_of_an_emptied_redis(
    clocks: Clocks, after_s: float
) -> None:
    new = []
    for _ in range(4):
        early, late = Process(), Process()
        new += early.new_ids(BLOCK_SIZE + 1)
        clocks.now_s += after_s
        redis.execute("FLUSHALL")
        new += late.new_ids(BLOCK_SIZE * 2) + early.new_ids(BLOCK_SIZE * 2)
    assert all_different(new)


def test_a_burst_before_redis_lost_its_data_is_not_leased_again(clocks: Clocks) -> None:
    Process().new_ids()
    clocks.now_s += 10
    new = Process().new_ids(40_000)
    redis.execute("FLUSHALL")
    new += Process().new_ids(1_000)
    assert all_different(new)


def test_leases_lost_by_a_failover_are_not_leased_again(clocks: Clocks) -> None:
    new = Process().new_ids()
    copy = connections.client().dump(ids._KEY)
    new += Process().new_ids(30_000)
    clocks.now_s += 1
    connections.client().restore(ids._KEY, 0, copy, replace=True)
    new += Process().new_ids(30_000)
    assert all_different(new)


# ---------------------------------------------------------------- bursts


def test_one_second_of_serials_is_leased_ahead_before_a_process_waits(clocks: Clocks) -> None:
    Process().new_ids()
    clocks.now_s += 2
    before_s = clocks.now_s
    new = Process().new_ids(AHEAD)
    assert clocks.now_s == before_s
    new += Process().new_ids(BLOCK_SIZE)
    assert 0 < clocks.now_s - before_s < 0.1
    assert all_different(new)


def test_a_stopped_clock_raises_serials_exhausted(clocks: Clocks) -> None:
    clocks.sleep = lambda duration_s: None  # type: ignore[method-assign]
    with pytest.raises(SerialsExhausted) as refusal:
        Process().new_ids()
    assert refusal.value.retry_after_s == 1


def test_the_first_lease_of_an_empty_redis_waits_for_milliseconds(plaza: World) -> None:
    began_s = time.monotonic()
    new_id()
    assert time.monotonic() - began_s < 0.5


# ---------------------------------------------------------------- midnight


def test_a_process_frozen_over_midnight_uses_no_serial_of_yesterday(
    clocks: Clocks,
) -> None:
    clocks.now_s = MIDNIGHT_S - 2
    frozen, awake = Process(), Process()
    new = frozen.new_ids(3)
    clocks.now_s = MIDNIGHT_S + 0.01
    new += awake.new_ids(BLOCK_SIZE) + frozen.new_ids(BLOCK_SIZE) + awake.new_ids(BLOCK_SIZE)
    assert [day_of(an_id) for an_id in new] == [20_999] * 3 + [21_000] * BLOCK_SIZE * 3
    assert all_different(new)


@pytest.mark.parametrize("redis_s", [-3, 0, 3])
def test_clocks_on_different_days_make_unique_ids(clocks: Clocks, redis_s: float) -> None:
    clocks.now_s, clocks.redis_s = MIDNIGHT_S - 5, redis_s
    process, other, new = Process(), Process(), []
    for _ in range(100):
        clocks.sleep(0.1)
        new += process.new_ids(7) + other.new_ids(7)
    assert all_different(new)
    assert {day_of(an_id) for an_id in new} == {20_999, 21_000}


def test_an_id_has_the_day_of_its_serial(clocks: Clocks) -> None:
    """Given a Redis whose next day has begun, and a process that still has a block of today."""
    clocks.now_s = MIDNIGHT_S - DAY_S + 1
    Process().new_ids()
    clocks.now_s = MIDNIGHT_S - DAY_S + 5
    since_morning, late = Process(), Process()
    new = since_morning.new_ids()
    clocks.now_s, clocks.redis_s = MIDNIGHT_S - 1, 6
    new += since_morning.new_ids(BLOCK_SIZE - 1) + late.new_ids(BLOCK_SIZE)
    serials = [an_id & 0xFFFFFFFF for an_id in new]
    assert serials[:BLOCK_SIZE] == serials[BLOCK_SIZE:], "the serials of both days are equal"
    assert all_different(new)


def test_the_last_serial_of_a_day_fits_32_bits(clocks: Clocks) -> None:
    clocks.now_s = MIDNIGHT_S - 1.5
    Process().new_ids()
    clocks.now_s = MIDNIGHT_S - 0.001
    new = Process().new_ids(AHEAD - BLOCK_SIZE)
    assert {second_of(an_id) for an_id in new} == {MIDNIGHT_S - 1}
    assert 2**32 - 2**26 < max(an_id & 0xFFFFFFFF for an_id in new) < 2**32


def test_the_key_expires_after_its_day(plaza: World) -> None:
    new_id()
    assert DAY_S < redis.execute("TTL", ids._KEY) <= 2 * DAY_S


# ---------------------------------------------------------------- a clock that goes back


@pytest.mark.parametrize("back_s", [0.01, 5, DAY_S])
def test_a_redis_whose_clock_goes_back_leases_no_serial_twice(
    clocks: Clocks, back_s: float
) -> None:
    clocks.now_s = MIDNIGHT_S + 4
    process = Process()
    new = process.new_ids()
    clocks.now_s += 4
    new += process.new_ids(BLOCK_SIZE)
    clocks.redis_s = -back_s
    new += Process().new_ids(BLOCK_SIZE * 20) + process.new_ids(BLOCK_SIZE * 20)
    clocks.redis_s = 0
    new += Process().new_ids(BLOCK_SIZE * 20)
    assert all_different(new)
    assert {day_of(an_id) for an_id in new} == {21_000}


def test_a_process_whose_clock_goes_back_makes_unique_ids(clocks: Clocks) -> None:
    process = Process()
    new = process.new_ids(50)
    clocks.now_s, clocks.redis_s = clocks.now_s - 1, 1
    clocks.sleep(0.5)
    new += process.new_ids(BLOCK_SIZE)
    assert all_different(new)

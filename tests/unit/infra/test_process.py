"""State of a process: lazy values, local caches, resets."""

from __future__ import annotations

import pytest

from plaza.infra.runtime import clock, process
from plaza.infra.runtime.process import (
    HotCache,
    Lazy,
    LocalCache,
    clear_caches,
    on_reset,
    reset_process,
)
from tests.support.failures import failing


class Clock:
    now_s = 1_000.0

    def monotonic_s(self) -> float:
        return self.now_s


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A stopped clock, and a process without the state of other modules."""
    now = Clock()
    monkeypatch.setattr(clock, "monotonic_s", now.monotonic_s)
    monkeypatch.setattr(process, "_resets", [])
    monkeypatch.setattr(process, "_caches", [])
    return now


# ---------------------------------------------------------------- lazy values


class Factory:
    def __init__(self) -> None:
        self.made: list[str] = []
        self.closed: list[str] = []
        self.fails = False

    def make(self) -> str:
        if self.fails:
            raise OSError("unreachable")
        self.made.append(f"value {len(self.made)}")
        return self.made[-1]


def test_a_value_is_created_once_at_its_first_use() -> None:
    factory = Factory()
    once = Lazy(factory.make)
    assert factory.made == []
    assert once.peek() is None
    assert [once.get(), once.get()] == ["value 0", "value 0"]
    assert once.peek() == "value 0"
    assert factory.made == ["value 0"]


def test_a_failed_factory_is_called_again() -> None:
    factory = Factory()
    once = Lazy(factory.make, close=factory.closed.append)
    factory.fails = True
    for _ in range(2):
        with pytest.raises(OSError, match="unreachable"):
            once.get()
    assert once.peek() is None
    once.reset()
    assert factory.closed == [], "there is no value to close"
    factory.fails = False
    assert once.get() == "value 0"


@pytest.mark.parametrize("value", [None, 0, "", False])
def test_a_false_value_is_created_once(value: object) -> None:
    made: list[object] = []

    def make() -> object:
        made.append(value)
        return value

    once = Lazy(make)
    assert [once.get(), once.get()] == [value, value]
    assert made == [value]


def test_a_reset_closes_a_created_value() -> None:
    factory = Factory()
    once = Lazy(factory.make, close=factory.closed.append)
    once.get()
    once.reset()
    once.reset()
    assert factory.closed == ["value 0"]
    assert once.get() == "value 1"


def test_a_value_whose_close_fails_is_dropped() -> None:
    factory = Factory()

    def close(value: str) -> None:
        raise OSError(value)

    once = Lazy(factory.make, close=close)
    once.get()
    with pytest.raises(OSError, match="value 0"):
        once.reset()
    assert once.get() == "value 1"


def test_forget_does_not_close_the_value() -> None:
    factory = Factory()
    once = Lazy(factory.make, close=factory.closed.append)
    once.get()
    once.forget()
    assert once.get() == "value 1"
    assert factory.closed == []


# ---------------------------------------------------------------- a local cache


def test_a_value_expires_exactly_at_its_ttl(now: Clock) -> None:
    cache: LocalCache[str, int] = LocalCache(10, ttl_s=1)
    cache.put("a", 1)
    now.now_s += 0.999
    assert cache.get("a") == 1
    assert "a" in cache
    now.now_s = 1_001.0
    assert cache.get("a") is None
    assert "a" not in cache
    assert len(cache) == 0, "an expired value is dropped when it is read"


def test_reading_a_value_does_not_extend_its_ttl(now: Clock) -> None:
    cache: LocalCache[str, int] = LocalCache(10, ttl_s=1)
    cache.put("a", 1)
    for step in range(1, 20):
        now.now_s = 1_000 + step / 10
        assert cache.get("a") == (1 if step < 10 else None)


def test_putting_a_value_again_restarts_its_ttl(now: Clock) -> None:
    cache: LocalCache[str, int] = LocalCache(10, ttl_s=1)
    cache.put("a", 1)
    now.now_s += 0.9
    cache.put("a", 2)
    now.now_s += 0.9
    assert cache.get("a") == 2


@pytest.mark.parametrize(("ttl_s", "cached_s"), [(0.5, 0.5), (5, 1), (0, 0), (-3, 0)])
def test_the_ttl_of_a_value_is_at_most_that_of_the_cache(
    now: Clock, ttl_s: float, cached_s: float
) -> None:
    cache: LocalCache[str, int] = LocalCache(10, ttl_s=1)
    cache.put("a", 1, ttl_s)
    now.now_s = 1_000 + cached_s
    assert cache.get("a") is None
    cache.put("a", 1, ttl_s)
    now.now_s += max(0, cached_s - 0.001)
    assert cache.get("a") == (1 if cached_s else None)


def test_without_a_ttl_a_value_does_not_expire(now: Clock) -> None:
    cache: LocalCache[str, int] = LocalCache(10)
    cache.put("a", 1)
    now.now_s += 1e12
    assert cache.get("a") == 1


def test_a_cache_never_exceeds_max_entries(now: Clock) -> None:
    cache: LocalCache[int, int] = LocalCache(50, ttl_s=1)
    for number in range(5_000):
        cache.put(number, number)
        now.now_s += 0.0001
        assert len(cache) <= 50
    assert cache.get_all(range(5_000)) == {number: number for number in range(4_950, 5_000)}


def test_the_least_recently_used_entry_is_dropped_first() -> None:
    cache: LocalCache[str, int] = LocalCache(3)
    cache.put_all({"a": 1, "b": 2, "c": 3})
    assert cache.get("a") == 1
    cache.put("b", 20)
    cache.put("d", 4)
    assert cache.get_all("abcd") == {"a": 1, "b": 20, "d": 4}


def test_none_is_a_value() -> None:
    cache: LocalCache[str, int | None] = LocalCache(10)
    loads: list[str] = []

    def load() -> None:
        loads.append("a")

    cache.put("absent", None)
    assert "absent" in cache
    assert cache.get_all(["absent", "unknown"]) == {"absent": None}
    assert [cache.get_or_load("a", load), cache.get_or_load("a", load)] == [None, None]
    assert loads == ["a"]


def test_a_failed_load_is_repeated() -> None:
    cache: LocalCache[str, int] = LocalCache(10)

    fail = failing(OSError("unreachable"))

    for _ in range(2):
        with pytest.raises(OSError, match="unreachable"):
            cache.get_or_load("a", fail)
    assert len(cache) == 0
    assert cache.get_or_load("a", lambda: 1) == 1
    assert cache.get_or_load("a", fail) == 1


def test_the_ttl_begins_after_a_slow_load(now: Clock) -> None:
    cache: LocalCache[str, int] = LocalCache(10, ttl_s=1)

    def load() -> int:
        now.now_s += 5
        return 1

    assert cache.get_or_load("a", load) == 1
    now.now_s += 0.9
    assert cache.get("a") == 1


def test_drop_and_clear_remove_values() -> None:
    cache: LocalCache[str, int] = LocalCache(10)
    cache.put_all({"a": 1, "b": 2})
    cache.drop("a")
    cache.drop("unknown")
    assert cache.get_all("ab") == {"b": 2}
    cache.clear()
    assert len(cache) == 0


# ---------------------------------------------------------------- a cache of hot keys


@pytest.fixture
def values() -> HotCache[str, int]:
    return HotCache(max_entries=50, hot_per_s=20)


def get_times(values: HotCache[str, int], times: int, load: int, key: str = "a") -> tuple[int, int]:
    """Get a key ``times`` times; return (how often it was loaded, the last value)."""
    loads, last = 0, -1
    for _ in range(times):
        value = values.get(key)
        if value is None:
            loads, value = loads + 1, load
            values.put(key, load)
        last = value
    return loads, last


def test_a_rarely_read_key_is_not_cached(values: HotCache[str, int], now: Clock) -> None:
    for _ in range(50):
        assert get_times(values, 19, load=5) == (19, 5)
        now.now_s += 1


def test_a_hot_key_is_loaded_once_a_second(values: HotCache[str, int], now: Clock) -> None:
    loads, _ = get_times(values, 1_000, load=5)
    assert loads == 20, "the twentieth read makes it hot"
    for second in range(1, 11):
        now.now_s += 1
        assert get_times(values, 1_000, load=5 + second) == (1, 5 + second)


def test_a_value_is_never_older_than_a_second(values: HotCache[str, int], now: Clock) -> None:
    get_times(values, 100, load=5)
    now.now_s += 0.99
    assert get_times(values, 1, load=6) == (0, 5)
    now.now_s = 1_001.0
    assert get_times(values, 1, load=6) == (1, 6)


def test_a_key_is_cold_after_two_seconds_with_few_reads(
    values: HotCache[str, int], now: Clock
) -> None:
    get_times(values, 100, load=5)
    now.now_s += 1
    assert get_times(values, 5, load=6)[0] == 1
    now.now_s += 1
    assert get_times(values, 5, load=7)[0] == 5


def test_a_hot_key_is_cold_after_a_pause(values: HotCache[str, int], now: Clock) -> None:
    get_times(values, 100, load=5)
    now.now_s += 2
    assert get_times(values, 5, load=6)[0] == 5


def test_a_dropped_hot_value_is_loaded_again(values: HotCache[str, int]) -> None:
    get_times(values, 100, load=5)
    values.drop("a")
    values.drop("unknown")
    assert get_times(values, 10, load=6) == (1, 6)
    values.clear()
    assert get_times(values, 10, load=7) == (10, 7)


def test_counted_and_cached_keys_are_limited(values: HotCache[str, int]) -> None:
    for number in range(500):
        get_times(values, 30, load=1, key=str(number))
    assert len(values) <= 50
    assert len(values._reads) <= 50


def test_hot_keys_work_after_a_clock_goes_back(values: HotCache[str, int], now: Clock) -> None:
    """As when a model test replaces the clock after a reset."""
    get_times(values, 100, load=5)
    values.clear()
    now.now_s -= 500
    assert get_times(values, 19, load=6)[0] == 19
    now.now_s += 1
    assert get_times(values, 100, load=7)[0] == 20


# ---------------------------------------------------------------- resets


def test_a_reset_restores_the_state_of_a_new_process() -> None:
    factory, holder = Factory(), [1, 2]
    once = Lazy(factory.make, close=factory.closed.append)
    cache: LocalCache[str, int] = LocalCache(10)
    hot: HotCache[str, int] = HotCache(10, hot_per_s=1)
    on_reset(holder.clear)
    once.get()
    cache.put("a", 1)
    assert get_times(hot, 2, load=1) == (1, 1)
    reset_process()
    assert (factory.closed, once.peek()) == (["value 0"], None)
    assert (len(cache), len(hot), holder) == (0, 0, [])


def test_clearing_caches_keeps_connections() -> None:
    factory = Factory()
    once = Lazy(factory.make, close=factory.closed.append)
    cache: LocalCache[str, int] = LocalCache(10)
    once.get()
    cache.put("a", 1)
    clear_caches()
    assert (once.peek(), len(cache)) == ("value 0", 0)

"""The cache: single flight, stale values, absence, drops."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest

from plaza.core.reactions import Target
from plaza.infra.derived import cache
from plaza.infra.derived.cache import (
    NEVER_STALE,
    STALE_WHILE_REBUILDING,
    CacheDrops,
    CachedValue,
    CacheEntry,
    Policy,
    StillLoading,
)
from plaza.infra.derived.projections import FENCE_TTL_S, key_of
from plaza.infra.redis import locks, redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.codec import TEXT
from plaza.social.content import mysql_store, queries
from plaza.social.content.model import StoredText, Text
from tests.integration.conftest import Away
from tests.support.failures import failing
from tests.support.plaza import World

KEY = key_of("shop:5", "page")
READERS = 500
PATIENCE_S = 300


def store(
    version: int, text: str | None, policy: Policy = NEVER_STALE, *, create: bool = True
) -> None:
    cache.store_all(policy, {KEY: CacheEntry(version, text)}, TEXT, create=create)


def cached() -> CachedValue[str] | None:
    return cache.read_all([KEY], TEXT)[0]


@pytest.fixture
def patient(plaza: World, set_up: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no wait end early: on a busy machine, 500 threads that take turns are slow."""
    set_up(redis_timeout_s=PATIENCE_S)
    monkeypatch.setattr(cache, "WAIT_S", PATIENCE_S)
    monkeypatch.setattr(cache, "LOCK_TTL_S", PATIENCE_S)


# ---------------------------------------------------------------- single flight


def test_500_concurrent_readers_of_an_expired_value_cost_one_load(
    patient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads, refused = Counter[str](), threading.Semaphore(0)
    try_lock = locks.try_lock

    def try_and_count(key: str, ttl_s: float) -> object:
        lock = try_lock(key, ttl_s)
        if lock is None:
            refused.release()
        return lock

    def load() -> CacheEntry[str]:
        loads["all"] += 1
        for _ in range(100):  # it ends after 100 others were refused the lock
            assert refused.acquire(timeout=PATIENCE_S)
        return CacheEntry(3, "noodles")

    monkeypatch.setattr(locks, "try_lock", try_and_count)
    with ThreadPoolExecutor(READERS) as crowd:
        together = threading.Barrier(READERS, timeout=PATIENCE_S)

        def read(_: int) -> str | None:
            together.wait()
            return cache.load_single_flight(NEVER_STALE, KEY, TEXT, load).value

        texts = list(crowd.map(read, range(READERS)))
    assert Counter(texts) == {"noodles": READERS}
    assert loads["all"] == 1


def test_an_expired_post_is_loaded_by_one_of_its_readers(
    patient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets_read: list[object] = []
    text = Text(type="post", id=11, author_id=7, body="b", kind="note", title="t", created_us=1)

    def read(targets: Iterable[Target]) -> dict[Target, StoredText]:
        targets_read.extend(targets)
        return {text.target: StoredText(text, deleted=False)}

    monkeypatch.setattr(mysql_store, "read", read)
    with ThreadPoolExecutor(100) as crowd:
        texts = list(crowd.map(queries._read_single_flight, [text.target] * 100))
    assert texts == [{text.target: text}] * 100
    assert targets_read == [text.target]


def test_a_reader_that_waits_too_long_gets_a_503(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "WAIT_S", 0.05)
    assert locks.try_lock(f"{KEY}:lock", 5)
    with pytest.raises(StillLoading) as refusal:
        cache.load_single_flight(NEVER_STALE, KEY, TEXT, lambda: CacheEntry(1, "new"))
    assert (refusal.value.status, refusal.value.retry_after_s) == (503, 1)


def test_an_expired_lock_does_not_unlock_its_new_owner(plaza: World) -> None:
    slow = locks.try_lock(f"{KEY}:lock", 5)
    assert slow
    redis.execute("DEL", f"{KEY}:lock")  # as if it had expired
    other = locks.try_lock(f"{KEY}:lock", 5)
    assert other
    assert locks.unlock(slow) is False
    assert locks.try_lock(f"{KEY}:lock", 5) is None, "the other caller still has it"
    assert locks.unlock(other) is True


def test_the_lock_is_released_when_a_load_fails(plaza: World) -> None:
    with pytest.raises(ZeroDivisionError):
        cache.load_single_flight(NEVER_STALE, KEY, TEXT, failing(ZeroDivisionError))
    assert cache.load_single_flight(NEVER_STALE, KEY, TEXT, lambda: CacheEntry(1, "x")).value == "x"


def test_a_value_that_is_cached_under_the_lock_is_returned_without_a_load(plaza: World) -> None:
    store(2, "cached")
    value = cache.load_single_flight(NEVER_STALE, KEY, TEXT, lambda: pytest.fail("a load"))
    assert value.value == "cached"


def test_a_value_below_the_fence_is_loaded_again(plaza: World) -> None:
    cache.drop_all({KEY: 3})
    loads = iter([CacheEntry(2, "old"), CacheEntry(3, "new")])
    assert cache.load_single_flight(NEVER_STALE, KEY, TEXT, lambda: next(loads)).value == "new"
    assert cached() == CachedValue(3, "new", stale=False)


# ---------------------------------------------------------------- stale, then rebuilt


def test_500_readers_of_a_stale_value_get_it_and_one_claims_the_rebuild(
    patient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(3, "noodles", STALE_WHILE_REBUILDING)
    assert cached() == CachedValue(3, "noodles", stale=False)
    now_us = clock.now_us()
    monkeypatch.setattr(clock, "now_us", lambda: now_us + 400_000_000)
    together = threading.Barrier(READERS, timeout=PATIENCE_S)

    def read(_: int) -> tuple[str | None, bool]:
        together.wait()
        [result] = cache.read_all([KEY], TEXT)
        assert result
        assert result.stale
        return result.value, cache.claim_rebuilds([KEY])[0]

    with ThreadPoolExecutor(READERS) as crowd:
        values = Counter(crowd.map(read, range(READERS)))
    assert values == {("noodles", False): READERS - 1, ("noodles", True): 1}


def test_a_rebuild_claim_expires(plaza: World) -> None:
    assert cache.claim_rebuilds([KEY]) == [True]
    assert cache.claim_rebuilds([KEY]) == [False]
    assert 0 < redis.execute("TTL", f"{KEY}:rebuild_claim") <= cache.REBUILD_CLAIM_TTL_S


def test_a_rebuild_with_the_same_version_makes_a_value_fresh(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(3, "noodles", STALE_WHILE_REBUILDING)
    now_us = clock.now_us()
    monkeypatch.setattr(clock, "now_us", lambda: now_us + 400_000_000)
    store(3, "noodles", STALE_WHILE_REBUILDING, create=False)
    assert cached() == CachedValue(3, "noodles", stale=False)


# ---------------------------------------------------------------- many together


def test_values_stored_together_expire_at_different_times(plaza: World) -> None:
    """10,000 values stored at once, by the tenth of the range in which they expire:

    |  90-92 % ########## |  92-94 % ########## | ... | 108-110 % ########## |
    """
    keys = [key_of(f"shop:{i}", "page") for i in range(10_000)]
    cache.store_all(
        STALE_WHILE_REBUILDING, dict.fromkeys(keys, CacheEntry(1, "x")), TEXT, create=True
    )
    ttl_s = STALE_WHILE_REBUILDING.ttl_s
    ends = redis.pipeline([("TTL", key) for key in keys])
    histogram = Counter(int((end / ttl_s - 0.9) * 50) for end in ends)
    for tenth in range(10):
        print(f"{90 + 2 * tenth}-{92 + 2 * tenth} % {'#' * (histogram[tenth] // 50)}")
    assert set(histogram) <= set(range(-1, 11))
    assert all(800 < histogram[tenth] < 1_200 for tenth in range(10)), histogram
    # They do not become stale together either.
    fresh_s = STALE_WHILE_REBUILDING.fresh_s or 0
    now_s = time.time()
    values = redis.pipeline([("HGET", key, "value") for key in keys])
    stale = Counter(
        int(((int(value.partition(";")[0]) - now_s) / fresh_s - 0.9) * 10) for value in values
    )
    assert max(stale.values()) < 6_500, stale


# ---------------------------------------------------------------- absence


def test_absence_is_cached_for_about_30_s(plaza: World) -> None:
    store(0, None)
    assert cached() == CachedValue(0, None, stale=False)
    assert 25 <= redis.execute("TTL", KEY) <= 33
    store(1, "created")
    assert cached() == CachedValue(1, "created", stale=False)


def test_late_absence_does_not_replace_a_value(plaza: World) -> None:
    store(1, "created")
    store(0, None)
    assert cached() == CachedValue(1, "created", stale=False)


# ---------------------------------------------------------------- writers


def test_a_dropped_value_is_not_restored_by_an_older_read(plaza: World) -> None:
    store(3, "old")
    cache.drop_all({KEY: 4})
    assert cached() is None
    store(3, "old")
    assert cached() is None
    assert 0 < redis.execute("TTL", KEY) <= FENCE_TTL_S
    store(4, "new")
    assert cached() == CachedValue(4, "new", stale=False)


def test_the_second_drop_removes_an_old_value_that_was_stored_after_the_first(plaza: World) -> None:
    cache.drop_all({KEY: 4})
    assert cache.schedule_drop({KEY: 4})
    redis.execute("FLUSHALL")  # Redis lost the fence
    store(3, "old")
    plaza.queues.drain()
    assert cached() is None


def test_the_second_drop_keeps_a_value_of_its_version(plaza: World) -> None:
    cache.schedule_drop({KEY: 4})
    store(4, "new")
    plaza.queues.drain()
    assert cached() == CachedValue(4, "new", stale=False)
    cache.drop_all({KEY: 3})
    assert cached() == CachedValue(4, "new", stale=False)


def test_the_second_drop_is_delayed_by_one_second(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = []
    monkeypatch.setattr(
        "plaza.infra.queues.sqs.send",
        lambda queue, body, delay_s=0: sent.append((queue, body, delay_s)),
    )
    cache.schedule_drop({KEY: 4})
    assert sent == [("drops", json.dumps({"versions": {KEY: 4}}, separators=(",", ":")), 1)]


def test_a_drop_raises_while_redis_is_down_and_is_safe_to_repeat(
    plaza: World, redis_away: Away
) -> None:
    with redis_away(), pytest.raises(RedisDown):
        cache.drop_again([CacheDrops({KEY: 4})])
    store(3, "old")
    cache.drop_again([CacheDrops({KEY: 4}), CacheDrops({KEY: 2})])
    assert cached() is None

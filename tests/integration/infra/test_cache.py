"""The cache, each policy against the failure that it is there for."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from plaza.content import mysql_store, queries
from plaza.content.model import StoredText, Text
from plaza.infra import cache, clock, redis
from plaza.infra.cache import (
    NEVER_STALE,
    STALE_WHILE_REBUILDING,
    CacheDrops,
    CachedValue,
    CacheEntry,
    Policy,
    StillLoading,
)
from plaza.infra.projections import FENCE_TTL_S, key_of
from plaza.infra.redis import RedisDown
from plaza.infra.settings import settings
from plaza.reactions import Target
from tests.integration.conftest import Away
from tests.support.plaza import World

KEY = key_of("shop:5", "page")
READERS = 500


def keep(
    version: int, text: str | None, policy: Policy = NEVER_STALE, *, create: bool = True
) -> None:
    cache.store_all(policy, {KEY: CacheEntry(version, text)}, create=create)


def held() -> CachedValue | None:
    return cache.read_all([KEY])[0]


@pytest.fixture
def many_clients(plaza: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each thread has a connection of its own, as each Lambda has."""
    own = threading.local()
    opened = []

    def client() -> object:
        if not hasattr(own, "client"):
            own.client = redis.connect(settings().redis_url, cluster=settings().redis_cluster)
            opened.append(own.client)
        return own.client

    monkeypatch.setattr(redis, "client", client)
    monkeypatch.setattr(cache, "WAIT_S", 60.0)  # on a busy machine 500 threads take their time
    monkeypatch.setattr(cache, "LOCK_TTL_S", 60)
    yield
    for one in opened:
        one.close()


# ---------------------------------------------------------------- one loads, the others wait


def test_500_concurrent_readers_of_what_ended_cost_one_database_read(
    many_clients: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads, refused = Counter[str](), threading.Semaphore(0)
    try_lock = redis.try_lock

    def try_and_tell(key: str, ttl_s: float) -> object:
        lock = try_lock(key, ttl_s)
        if lock is None:
            refused.release()
        return lock

    def load() -> CacheEntry:
        loads["all"] += 1
        for _ in range(100):  # it takes as long as a hundred others need to come
            assert refused.acquire(timeout=30)
        return CacheEntry(3, "noodles")

    monkeypatch.setattr(redis, "try_lock", try_and_tell)
    with ThreadPoolExecutor(READERS) as crowd:
        together = threading.Barrier(READERS, timeout=60)

        def read(_: int) -> str | None:
            together.wait()
            return cache.load_single_flight(NEVER_STALE, KEY, load).text

        answers = list(crowd.map(read, range(READERS)))
    assert Counter(answers) == {"noodles": READERS}
    assert loads["all"] == 1


def test_a_post_that_ended_is_read_by_one_of_its_readers(
    many_clients: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    text = Text(type="post", id=11, author_id=7, body="b", kind="note", title="t", created_us=1)

    def read(targets: Iterable[Target]) -> dict[Target, StoredText]:
        asked.extend(targets)
        return {text.target: StoredText(text, deleted=False)}

    monkeypatch.setattr(mysql_store, "read", read)
    with ThreadPoolExecutor(100) as crowd:
        answers = list(crowd.map(queries._read_single_flight, [text.target] * 100))
    assert answers == [{text.target: text}] * 100
    assert asked == [text.target]


def test_who_waits_in_vain_is_told_so(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "WAIT_S", 0.05)
    assert redis.try_lock(f"{KEY}:lock", 5)
    with pytest.raises(StillLoading) as refusal:
        cache.load_single_flight(NEVER_STALE, KEY, lambda: CacheEntry(1, "mine"))
    assert (refusal.value.status, refusal.value.retry_after_s) == (503, 1)


def test_a_lock_that_ended_is_not_taken_from_who_has_it_now(plaza: World) -> None:
    slow = redis.try_lock(f"{KEY}:lock", 5)
    assert slow
    redis.execute("DEL", f"{KEY}:lock")  # as if its time had run out
    other = redis.try_lock(f"{KEY}:lock", 5)
    assert other
    assert redis.unlock(slow) is False
    assert redis.try_lock(f"{KEY}:lock", 5) is None, "it is still the other's"
    assert redis.unlock(other) is True


def test_the_lock_is_given_back_when_loading_fails(plaza: World) -> None:
    def fail() -> CacheEntry:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cache.load_single_flight(NEVER_STALE, KEY, fail)
    assert cache.load_single_flight(NEVER_STALE, KEY, lambda: CacheEntry(1, "x")).text == "x"


def test_a_value_that_came_while_the_lock_was_waited_for_is_taken(plaza: World) -> None:
    keep(2, "there")
    assert (
        cache.load_single_flight(NEVER_STALE, KEY, lambda: pytest.fail("not asked")).text == "there"
    )


def test_what_is_older_than_what_was_heard_of_is_loaded_once_more(plaza: World) -> None:
    cache.drop_all({KEY: 3})
    loads = iter([CacheEntry(2, "old"), CacheEntry(3, "new")])
    assert cache.load_single_flight(NEVER_STALE, KEY, lambda: next(loads)).text == "new"
    assert held() == CachedValue(3, "new", stale=False)


# ---------------------------------------------------------------- stale, then rebuilt


def test_500_readers_of_a_stale_value_get_it_at_once_and_one_has_it_rebuilt(
    many_clients: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(3, "noodles", STALE_WHILE_REBUILDING)
    assert held() == CachedValue(3, "noodles", stale=False)
    now_us = clock.now_us()
    monkeypatch.setattr(clock, "now_us", lambda: now_us + 400_000_000)
    together = threading.Barrier(READERS, timeout=60)

    def read(_: int) -> tuple[str | None, bool]:
        redis.client()  # of a cluster it connects, which takes 500 of them their time
        together.wait()
        [found] = cache.read_all([KEY])
        assert found
        assert found.stale
        return found.text, cache.claim_rebuilds([KEY])[0]

    with ThreadPoolExecutor(READERS) as crowd:
        answers = Counter(crowd.map(read, range(READERS)))
    assert answers == {("noodles", False): READERS - 1, ("noodles", True): 1}


def test_a_rebuild_that_never_came_is_asked_for_again(plaza: World) -> None:
    assert cache.claim_rebuilds([KEY]) == [True]
    assert cache.claim_rebuilds([KEY]) == [False]
    assert 0 < redis.execute("TTL", f"{KEY}:rebuild_claim") <= cache.REBUILD_CLAIM_TTL_S


def test_a_rebuild_makes_a_stale_value_fresh_though_its_version_is_the_same(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(3, "noodles", STALE_WHILE_REBUILDING)
    now_us = clock.now_us()
    monkeypatch.setattr(clock, "now_us", lambda: now_us + 400_000_000)
    keep(3, "noodles", STALE_WHILE_REBUILDING, create=False)
    assert held() == CachedValue(3, "noodles", stale=False)


# ---------------------------------------------------------------- many together


def test_what_came_together_does_not_end_together(plaza: World) -> None:
    """10,000 values kept in one go, by the tenth of the time in which they end:

    |  90-92 % ########## |  92-94 % ########## | ... | 108-110 % ########## |
    """
    keys = [key_of(f"shop:{i}", "page") for i in range(10_000)]
    cache.store_all(STALE_WHILE_REBUILDING, dict.fromkeys(keys, CacheEntry(1, "x")), create=True)
    ttl_s = STALE_WHILE_REBUILDING.ttl_s
    ends = redis.pipeline([("TTL", key) for key in keys])
    histogram = Counter(int((end / ttl_s - 0.9) * 50) for end in ends)
    for tenth in range(10):
        print(f"{90 + 2 * tenth}-{92 + 2 * tenth} % {'#' * (histogram[tenth] // 50)}")
    assert set(histogram) <= set(range(-1, 11))
    assert all(800 < histogram[tenth] < 1_200 for tenth in range(10)), histogram
    # Nor do they get stale together.
    fresh_s = STALE_WHILE_REBUILDING.fresh_s or 0
    now_s = time.time()
    values = redis.pipeline([("HGET", key, "value") for key in keys])
    stale = Counter(
        int(((int(value.partition(";")[0]) - now_s) / fresh_s - 0.9) * 10) for value in values
    )
    assert max(stale.values()) < 6_500, stale


# ---------------------------------------------------------------- what isn't there


def test_it_is_remembered_for_a_short_time_that_there_is_nothing(plaza: World) -> None:
    keep(0, None)
    assert held() == CachedValue(0, None, stale=False)
    assert 25 <= redis.execute("TTL", KEY) <= 33
    keep(1, "made")
    assert held() == CachedValue(1, "made", stale=False)


def test_who_read_before_it_was_made_does_not_say_that_there_is_nothing(plaza: World) -> None:
    keep(1, "made")
    keep(0, None)
    assert held() == CachedValue(1, "made", stale=False)


# ---------------------------------------------------------------- writers


def test_what_was_let_go_of_does_not_come_back_by_who_read_before(plaza: World) -> None:
    keep(3, "old")
    cache.drop_all({KEY: 4})
    assert held() is None
    keep(3, "old")
    assert held() is None
    assert 0 < redis.execute("TTL", KEY) <= FENCE_TTL_S
    keep(4, "new")
    assert held() == CachedValue(4, "new", stale=False)


def test_an_old_value_that_came_back_all_the_same_goes_the_second_time(plaza: World) -> None:
    cache.drop_all({KEY: 4})
    assert cache.schedule_drop({KEY: 4})
    redis.execute("FLUSHALL")  # a Redis that forgot the fence
    keep(3, "old")
    plaza.queues.drain()
    assert held() is None


def test_the_second_time_leaves_alone_what_is_as_new(plaza: World) -> None:
    cache.schedule_drop({KEY: 4})
    keep(4, "new")
    plaza.queues.drain()
    assert held() == CachedValue(4, "new", stale=False)
    cache.drop_all({KEY: 3})
    assert held() == CachedValue(4, "new", stale=False)


def test_the_message_comes_a_second_after(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = []
    monkeypatch.setattr(
        "plaza.infra.sqs.send",
        lambda queue, body, delay_s=0: sent.append((queue, body, delay_s)),
    )
    cache.schedule_drop({KEY: 4})
    assert sent == [("drops", json.dumps({"versions": {KEY: 4}}, separators=(",", ":")), 1)]


def test_it_is_tried_again_while_redis_is_away(plaza: World, redis_away: Away) -> None:
    with redis_away(), pytest.raises(RedisDown):
        cache.drop_again([CacheDrops({KEY: 4})])
    keep(3, "old")
    cache.drop_again([CacheDrops({KEY: 4}), CacheDrops({KEY: 2})])
    assert held() is None

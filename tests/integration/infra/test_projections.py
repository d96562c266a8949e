"""Projections: the newest version stays, in any order of readers and writers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest

from plaza.core import counters
from plaza.core.counters import UserCounter, redis_store
from plaza.infra.derived import projections
from plaza.infra.derived.projections import FENCE_TTL_S, TTL_S, Projection, key_of
from plaza.infra.mysql import mysql
from plaza.infra.redis import connections, redis, replicas
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime.codec import TEXT
from tests.support.call_log import record_call
from tests.support.failures import failing
from tests.support.plaza import World

KEY = key_of("user:7", "counters")


def create(version: int, value: str = "") -> None:
    projections.store_all([Projection(KEY, version, value or f"v{version}")], create=True)


def update(version: int) -> None:
    projections.store_all([Projection(KEY, version, f"v{version}")], create=False)


def stored() -> tuple[int, str] | None:
    return projections.read_all([KEY], TEXT)[0]


# ---------------------------------------------------------------- in sequence


def test_readers_create_and_writers_update_projections(plaza: World) -> None:
    assert stored() is None
    create(3)
    assert stored() == (3, "v3")
    update(4)
    assert stored() == (4, "v4")


def test_a_writer_that_finds_no_projection_leaves_a_fence(plaza: World) -> None:
    update(4)
    assert stored() is None
    assert connections.client().hgetall(KEY) == {"version": "4"}
    assert 0 < redis.execute("TTL", KEY) <= FENCE_TTL_S


def test_a_fence_refuses_an_older_value(plaza: World) -> None:
    update(4)
    create(3)
    assert stored() is None
    create(4)
    assert stored() == (4, "v4")


def test_a_late_writer_does_not_lower_a_fence(plaza: World) -> None:
    update(9)
    update(4)
    create(5)
    assert stored() is None
    update(10)
    create(9)
    assert stored() is None


@pytest.mark.parametrize("create_first", [True, False])
def test_the_newest_version_stays_in_all_orders_and_repeats(
    plaza: World, create_first: bool
) -> None:
    for order in permutations([1, 2, 3, 2, 1]):
        redis.execute("DEL", KEY)
        if create_first:
            create(0)
        for version in order:
            update(version)
        assert stored() == ((3, "v3") if create_first else None)
        for version in order:
            create(version)
        assert stored() == (3, "v3")


def test_versions_are_compared_as_numbers_and_exactly(plaza: World) -> None:
    create(9)
    update(10)
    assert stored() == (10, "v10")
    create(2**53 - 2)
    update(2**53 - 1)
    assert stored() == (2**53 - 1, f"v{2**53 - 1}")
    update(2**53 - 2)
    assert stored() == (2**53 - 1, f"v{2**53 - 1}")


def test_a_projection_expires_after_an_hour(plaza: World) -> None:
    update(1)
    create(1)
    assert TTL_S * 0.89 < redis.execute("TTL", KEY) <= TTL_S * 1.1
    redis.execute("EXPIRE", KEY, 5)
    update(2)
    assert redis.execute("TTL", KEY) > TTL_S * 0.89


def test_an_empty_value_is_a_value(plaza: World) -> None:
    projections.store_all([Projection(KEY, 1, "")], create=True)
    assert stored() == (1, "")


def test_many_projections_cost_one_round_trip(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    pipeline = redis._pipeline
    monkeypatch.setattr(redis, "_pipeline", lambda *args: record_call(sent, args, pipeline(*args)))
    many = [Projection(key_of(f"user:{n}", "counters"), 1, str(n)) for n in range(1, 201)]
    projections.store_all(many, create=True)
    assert projections.read_all([p.key for p in many], TEXT) == [(1, str(n)) for n in range(1, 201)]
    assert len(sent) == 2
    projections.store_all([], create=True)
    assert projections.read_all([], TEXT) == []
    assert len(sent) == 2


def test_projections_that_were_stored_together_do_not_expire_together(plaza: World) -> None:
    many = [Projection(key_of(f"user:{n}", "counters"), 1, "v", 10_000) for n in range(1, 51)]
    projections.store_all(many, create=True)
    left_s = [redis.execute("TTL", projection.key) for projection in many]
    assert min(left_s) < max(left_s) - 60
    assert all(8_990 <= seconds <= 11_000 for seconds in left_s)


def test_a_long_value_has_a_run_of_its_own(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    run_all = redis.run_all
    monkeypatch.setattr(
        redis, "run_all", lambda commands: record_call(calls, commands, run_all(commands))
    )
    for text in ("short", "long" * 1_000):
        values = [Projection(key_of("user:7", what), 1, text) for what in ("a", "b", "c")]
        projections.store_all(values, create=True)
    assert [len(commands) for commands in calls] == [1, 3]


def test_a_value_that_redis_does_not_store_is_returned(plaza: World) -> None:
    result = projections.read_through(
        [7],
        lambda _: {},
        lambda _: {7: "a value"},
        failing(RedisDown("unavailable", may_have_run=False)),
    )
    assert result == {7: "a value"}


def test_a_reader_stores_its_value_where_its_fence_still_is(plaza: World) -> None:
    [lost] = projections.announce_reads([KEY])
    redis.execute("DEL", KEY)
    [fence] = projections.announce_reads([KEY])
    assert projections.announce_reads([KEY]) == [fence], "readers at once have one fence"
    projections.store_read([Projection(KEY, 3, "lost")], [lost])
    assert stored() is None
    projections.store_read([Projection(KEY, 3, "v3")], [fence])
    projections.store_read([Projection(KEY, 2, "v2")], [fence])
    assert stored() == (3, "v3")
    assert FENCE_TTL_S < redis.execute("TTL", KEY) <= 1.1 * TTL_S


def test_keys_that_a_replica_lacks_are_read_from_its_master(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_on_empty_replica(calls: object, commands: Sequence[object]) -> list[Any]:
        return [[None, None] for _ in commands]

    create(3)
    monkeypatch.setattr(replicas, "run_all", run_on_empty_replica)
    assert projections.read_all([KEY], TEXT, replicas.run_all) == [(3, "v3")]


# ---------------------------------------------------------------- concurrent readers and writers


def write(total: int, version: int) -> None:
    mysql.write(
        "INSERT INTO user_counter (user_id, posts_total, version) VALUES (7, %s, %s)"
        " ON DUPLICATE KEY UPDATE posts_total = VALUES(posts_total), version = VALUES(version)",
        (total, version),
    )


def in_redis() -> UserCounter | None:
    return redis_store.read_users([7]).get(7)


@pytest.mark.parametrize("when", ["before it reads", "after it read", "after it filled"])
def test_redis_matches_mysql_after_a_concurrent_write(
    plaza: World, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    write(1, 1)
    read = counters.mysql_store.read_users

    def commit_and_project() -> None:
        write(2, 2)
        counters.project_users(read([7]))

    def read_around(ids: list[int]) -> dict[int, UserCounter]:
        if when == "before it reads":
            commit_and_project()
        values = read(ids)
        if when == "after it read":
            commit_and_project()
        return values

    monkeypatch.setattr(counters.mysql_store, "read_users", read_around)
    counter = counters.read_users([7])[7]
    if when == "after it filled":
        commit_and_project()
    assert counter.posts_total == (2 if when == "before it reads" else 1)
    assert in_redis() in (None, UserCounter(posts_total=2, version=2))
    monkeypatch.undo()
    assert counters.read_users([7])[7] == UserCounter(posts_total=2, version=2)
    assert in_redis() == UserCounter(posts_total=2, version=2)


def test_a_late_projection_does_not_replace_a_newer_one(
    plaza: World,
) -> None:
    write(1, 1)
    counters.read_users([7])
    write(2, 2)
    slow = counters.mysql_store.read_users([7])
    write(3, 3)
    counters.refresh_projections([7])
    counters.project_users(slow)
    assert in_redis() == UserCounter(posts_total=3, version=3)


def test_two_concurrent_readers_store_the_newer_value(plaza: World) -> None:
    write(1, 1)
    announced = redis_store.announce_reads([7])
    early = counters.mysql_store.read_users([7])
    write(2, 2)
    counters.read_users([7])
    redis_store.store_read_users(early, announced)
    assert in_redis() == UserCounter(posts_total=2, version=2)
